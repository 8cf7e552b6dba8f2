import { hash, timingSafeEqual } from "node:crypto";
import { fingerprintOf } from "../../domain/api-key.ts";
import { DomainError } from "../../domain/errors.ts";
import { BREAK_GLASS, type Operator } from "../../domain/operator.ts";
import { isWellFormedOperatorToken } from "../../domain/operator-token.ts";
import type { IncomingCall } from "../incoming-call.ts";
import { bearerCredential } from "./bearer.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";

type Credentials = Pick<IncomingCall, "target" | "headers" | "remoteAddress">;

/** Returns the operator whose token the request carries, or throws. */
export type AuthenticateOperator = (request: Credentials) => Promise<Operator>;

type Options = {
  /** The value of VX_ADMIN_TOKEN. */
  readonly adminToken: string;
  /** Looks up the fingerprint of a token, for every request: a revocation has effect at once. */
  readonly find: (fingerprint: string) => Promise<Operator | undefined>;
  readonly failures: FailedAuthentications;
};

export function operatorAuthentication({ adminToken, find, failures }: Options): AuthenticateOperator {
  const expected = hash("sha256", adminToken, "buffer");
  return async (request) => {
    const token = tokenOf(request);
    if (timingSafeEqual(hash("sha256", token, "buffer"), expected)) return BREAK_GLASS;
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

function tokenOf(request: Credentials): string {
  try {
    return bearerCredential(request);
  } catch (error) {
    throw new DomainError("invalid_operator_token", { cause: error });
  }
}
