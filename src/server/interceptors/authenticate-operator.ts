import type { Actor } from "../../database/action.ts";
import { measured } from "../../domain/call-trace.ts";
import { DomainError } from "../../domain/errors.ts";
import { currency } from "../../domain/money.ts";
import { hasRole } from "../../domain/operator.ts";
import type { Call } from "../call.ts";
import { type AuthenticateOperator, operatorOf } from "../credentials/operator-authentication.ts";
import { beforeDeadline } from "./deadline.ts";
import type { AdmittedCall, Interceptor } from "./interceptor.ts";

export type OperatorAuthentication = {
  readonly authenticate: AuthenticateOperator;
  /** Records that the operator lacks the role for a call. */
  readonly logRefusal: (call: Call, actor: Actor, error: DomainError) => Promise<void>;
};

/** Admits an operator: token or session (401), role (403). */
export function authenticateOperator(options: OperatorAuthentication): Interceptor<Call, AdmittedCall> {
  return (next) => async (call) => {
    const span = call.trace?.startStage("gate");
    const admission = await measured(span, beforeDeadline(call, admissionOf(call, options, true)));
    const admitted = { ...admission, recheck: () => admissionOf(call, options, false) };
    // Commands of operators write amounts in the currency of the server.
    call.setHeader("x-vx-currency", currency().code);
    await next(Object.assign(call, { admitted }));
  };
}

async function admissionOf(call: Call, { authenticate, logRefusal }: OperatorAuthentication, isUse: boolean) {
  const actor = await authenticate(call, { isUse });
  const operator = operatorOf(actor);
  const { role } = call.policy;
  if (role === undefined) throw new Error("a method of operators has no role");
  if (!hasRole(operator, role)) {
    const error = new DomainError("insufficient_role", {
      message: `This method requires the role "${role}"; the operator "${operator.name}" has the role "${operator.role}".`,
      metadata: { required_role: role, role: operator.role },
    });
    await logRefusal(call, actor, error);
    throw error;
  }
  return { actor, operator };
}
