import type { ApiCall, Deps } from "../api/define-service.ts";
import type { Action, Actor } from "../database/action.ts";
import { type DomainError, isRefusal } from "../domain/errors.ts";
import { logRefusal } from "./operator-log.ts";

/** What requests of operators have; keys and members give no reason. */
export type WithReason = { readonly reason?: string | undefined };

/** What the log shows of a change besides the actor and the method. Undefined details are omitted. */
export type Change = WithReason & {
  /** The id or name that the request names; empty if the call creates the target. */
  readonly target?: string;
  readonly details?: Readonly<Record<string, string | number | bigint | undefined>>;
};

export function actionOf(actor: Actor, method: string, requestId: string, change: Change): Action {
  const { target = "", reason = "", details = {} } = change;
  const known = Object.entries(details).filter(([, value]) => value !== undefined && value !== "");
  return {
    actor,
    method,
    target,
    reason,
    details: Object.fromEntries(known.map(([name, value]) => [name, String(value)])),
    requestId,
  };
}

/** Makes a change, which logs itself in its transaction if it is logged. Then a refusal is logged here; it changed nothing. */
export async function makeLoggedChange<Result>(
  deps: Deps,
  call: ApiCall,
  change: Change,
  make: (action: Action) => Promise<Result>,
): Promise<Result> {
  if (!call.isLogged) return await make(call.action);
  const action = actionOf(call.actor, call.methodName, call.requestId, change);
  const amountMicros = change.details?.amount_micros;
  call.recordChange(action.target, typeof amountMicros === "bigint" ? amountMicros : undefined);
  try {
    return await make(action);
  } catch (error) {
    // Other errors, such as a lost connection, do not tell whether the change was made.
    if (isRefusal(error)) await recordRefusal(deps, action, error);
    throw error;
  }
}

/** Logs a refusal. If that fails, the caller still gets the refusal, and the log of the server has the failure. */
export async function recordRefusal(
  { database, onUnlogged }: Pick<Deps, "database" | "onUnlogged">,
  action: Action,
  { reason }: DomainError,
): Promise<void> {
  await logRefusal(database, action, reason).catch((error: unknown) => onUnlogged(action, reason, error));
}
