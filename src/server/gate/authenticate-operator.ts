import { hash, timingSafeEqual } from "node:crypto";
import { fingerprintOf, isWellFormedOperatorToken } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import { BREAK_GLASS, type Operator } from "../../domain/operator.ts";
import type { Session } from "../../store/operators.ts";
import type { SessionAuthentication } from "./authenticate-session.ts";
import { bearerCredential, type Credentials } from "./bearer.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";

/**
 * Returns the operator whose token or session the request carries, or throws. A use delays the expiry of an idle session.
 */
export type AuthenticateOperator = (
  request: Credentials,
  options?: { readonly isUse: boolean },
) => Promise<Operator>;

type Options = {
  /** Whether this is a token of the break-glass admin. */
  readonly isAdminToken: (token: string) => boolean;
  /** Looks up the fingerprint of a token, for every request: a revocation has effect at once. */
  readonly find: (fingerprint: string) => Promise<Operator | undefined>;
  readonly failures: FailedAuthentications;
  /** Undefined without sign-in. */
  readonly sessions: SessionAuthentication<Session> | undefined;
};

export function operatorAuthentication({
  isAdminToken,
  find,
  failures,
  sessions,
}: Options): AuthenticateOperator {
  return async (request, { isUse } = { isUse: true }) => {
    if (sessions?.isCarriedBy(request)) return await sessions.authenticateCall(request, isUse);
    const token = tokenOf(request);
    if (isAdminToken(token)) return BREAK_GLASS;
    if (!isWellFormedOperatorToken(token)) throw new DomainError("invalid_operator_token");
    const fingerprint = fingerprintOf(token);
    failures.refuseBlocked(request.remoteAddress, fingerprint);
    const operator = await find(fingerprint);
    if (!operator) {
      failures.addFailure(request.remoteAddress, fingerprint);
      throw new DomainError("invalid_operator_token");
    }
    failures.addValid(fingerprint);
    return operator;
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
