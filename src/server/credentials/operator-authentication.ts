import { hash, timingSafeEqual } from "node:crypto";
import type { Actor } from "../../database/action.ts";
import { fingerprintOf, isWellFormedOperatorToken } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import { BREAK_GLASS, type Operator, type Role } from "../../domain/operator.ts";
import type { Session } from "../../operators/store.ts";
import type { Credentials } from "../call.ts";
import { bearerCredential } from "./bearer.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";
import type { SessionAuthentication } from "./session-authentication.ts";

/** An operator, as the database proves it again for a change. */
type OperatorActor = Actor & { readonly role: Role };

/**
 * Returns the operator whose token or session the request carries, or throws. A use delays the expiry of an idle session.
 */
export type AuthenticateOperator = (request: Credentials, options?: { readonly isUse: boolean }) => Promise<OperatorActor>;

export function operatorOf({ id, name, role }: OperatorActor): Operator {
  return { id, name, role };
}

type Options = {
  /** The tokens of the break-glass admin. */
  readonly adminTokens: {
    matches(token: string): boolean;
    whileValid<Result>(token: string, send: () => Promise<Result>): Promise<Result>;
  };
  /** Looks up the fingerprint of a token, for every request: a revocation has effect at once. */
  readonly find: (fingerprint: string) => Promise<Operator | undefined>;
  readonly failures: FailedAuthentications;
  /** Undefined without sign-in. */
  readonly sessions: SessionAuthentication<Session> | undefined;
};

export function operatorAuthentication({ adminTokens, find, failures, sessions }: Options): AuthenticateOperator {
  return async (request, { isUse } = { isUse: true }) => {
    if (sessions?.isCarriedBy(request)) {
      const { id, name, role } = await sessions.authenticateCall(request, isUse);
      return {
        kind: "operator_session",
        id,
        name,
        role,
        fingerprint: fingerprintOf(sessions.tokenOf(request)),
      };
    }
    const token = tokenOf(request);
    if (adminTokens.matches(token)) {
      return {
        ...BREAK_GLASS,
        kind: "break_glass",
        whileValid: (send) => adminTokens.whileValid(token, send),
      };
    }
    if (!isWellFormedOperatorToken(token)) throw new DomainError("invalid_operator_token");
    const fingerprint = fingerprintOf(token);
    failures.refuseBlocked(request.remoteAddress, fingerprint);
    const operator = await find(fingerprint);
    if (!operator) {
      failures.addFailure(request.remoteAddress, fingerprint);
      throw new DomainError("invalid_operator_token");
    }
    failures.addValid(fingerprint);
    return { ...operator, kind: "operator", fingerprint };
  };
}

/** Who may read /metrics: every operator, and the holder of VX_METRICS_TOKEN. Throws for others. */
export function metricsAuthentication(
  metricsToken: string | undefined,
  authenticate: AuthenticateOperator,
): (request: Credentials) => Promise<void> {
  const isMetricsToken = metricsToken === undefined ? () => false : tokenMatcher(metricsToken);
  return async (request) => {
    if (!isMetricsToken(tokenOf(request))) await authenticate(request);
  };
}

/** Compares in constant time. */
export function tokenMatcher(expected: string): (token: string) => boolean {
  const digest = hash("sha256", expected, "buffer");
  return (token) => timingSafeEqual(hash("sha256", token, "buffer"), digest);
}

function tokenOf(request: Credentials): string {
  try {
    return bearerCredential(request);
  } catch (error) {
    throw new DomainError("invalid_operator_token", { cause: error });
  }
}
