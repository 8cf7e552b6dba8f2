import * as fields from "../../gen/sql/fields.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import type { MemberRole } from "../domain/member.ts";
import type { Role } from "../domain/operator.ts";
import type { ScopeBits } from "../domain/scope.ts";
import { CompositeType } from "./driver/batcher.ts";
import type { Cell, Cells } from "./driver/cells.ts";
import type { Parameter } from "./driver/connection.ts";

/** Who makes a change, and what the database needs to prove the right to it in the transaction of the change: see credentials.sql. */
export type Actor = {
  readonly kind: "key" | "member" | "person" | "operator" | "operator_session" | "break_glass" | "server";
  readonly id: string;
  /** Empty for a member: it would be personal data that cannot be deleted from the log. */
  readonly name: string;
  /** Only of a key or a member, whose changes belong to the account. */
  readonly accountId?: string | undefined;
  /** SHA-256 of the secret or the session, in hex. Undefined for the server and break-glass tokens, and for a locked session. */
  readonly fingerprint?: string | undefined;
  /** The scopes that the method requires of a key. */
  readonly scope?: ScopeBits | undefined;
  /** The role with which the operator or member was admitted: another one refuses the change. */
  readonly role?: Role | MemberRole | undefined;
  /** The scopes that a member's role covers. */
  readonly coveredScopes?: ScopeBits | undefined;
  readonly isAllowedWhileSuspended?: boolean | undefined;
  /** The address ranges of a key that were compared with the address of the call. */
  readonly cidrs?: string | undefined;
  /** Only of a break-glass token, which no table has: sends a change while the token is valid; throws if it is not. */
  readonly whileValid?: (<Result>(send: () => Promise<Result>) => Promise<Result>) | undefined;
};

/** A change: by whom, by which method and why, for the database and the operator log. It must contain no key and no token. */
export type Action = {
  readonly actor: Actor;
  /** Such as "CreditAccount". */
  readonly method: string;
  /** The id or name that the request names; logged if the change is refused. */
  readonly target: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, string>>;
  readonly requestId: string;
};

const callerType = new CompositeType(fields.caller);

/** The server itself, whose right nobody can withdraw. */
export const SERVER: Actor = { kind: "server", id: "server", name: "server" };

/** The lane of a change of the row with this id: keys and members change only what is in the lane of their account. */
export function laneOfChange({ actor }: Action, id: string): Lane {
  return laneOfId(actor.accountId ?? id);
}

/** Where changes are made. */
export type ChangedCells = Pick<Cells, "all" | "home" | "route">;

/** Calls a function that makes a change for a caller. What belongs to no account is in the lane after the last one. */
export async function change<Row>(
  database: ChangedCells,
  lane: Lane,
  action: Action,
  name: string,
  ...parameters: Parameter[]
): Promise<Row[]> {
  return await database.route(lane, (cell) => changeIn<Row>(database, cell, action, name, parameters));
}

/** One cell of `database.all`, whichever owns a lane. */
export function onlyCell({ all, home }: Cells, cell: number): ChangedCells {
  return { all, home, route: (_lane, send) => send(cell) };
}

async function changeIn<Row>(
  database: ChangedCells,
  cell: number,
  action: Action,
  name: string,
  parameters: readonly Parameter[],
): Promise<Row[]> {
  const { actor } = action;
  const send = (caller: string) => (database.all[cell] as Cell).call<Row>(name, caller, ...parameters);
  const caller = callerOf(action);
  if (actor.whileValid) return await actor.whileValid(() => send(caller));
  const proof = PROOFS_OF_SESSIONS[actor.kind];
  if (proof === undefined || cell === 0) return await send(caller);
  // The first cell has the sessions: its lock keeps this one until the other cell has committed the change.
  const proven = callerOf({ ...action, actor: { ...actor, fingerprint: undefined } });
  return await database.home.during(proof, caller, () => send(proven));
}

const PROOFS_OF_SESSIONS: Partial<Record<Actor["kind"], string>> = {
  member: "prove_person",
  person: "prove_person",
  operator_session: "prove_operator",
};

/** The parameter with which a function that makes a change gets the action. */
export function callerOf({ actor, ...action }: Action): string {
  return callerType.rowOf({
    kind: actor.kind,
    id: actor.id,
    name: actor.name,
    account_id: actor.accountId,
    fingerprint: actor.fingerprint === undefined ? undefined : { hex: actor.fingerprint },
    scope: actor.scope ?? 0,
    role: actor.role,
    covered_scopes: actor.coveredScopes ?? 0,
    while_suspended: String(actor.isAllowedWhileSuspended ?? false),
    cidrs: actor.cidrs,
    method: action.method,
    target: action.target,
    reason: action.reason,
    details: JSON.stringify(action.details),
    request_id: action.requestId,
  });
}
