import { fingerprintOf, isWellFormedKey, laneOfKey } from "../../domain/api-key.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Admission, AdmissionRequest, RateWindow } from "../../store/admit.ts";
import { bearerCredential } from "./bearer.ts";
import type { Call } from "./call.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";
import type { OperatorCheck } from "./operator-token.ts";

/**
 * Admits a call or throws, before any of its body is read: key (401), scope (403), rate (429), size (413).
 */
export type Gate = (call: Call) => Promise<void>;

type DeveloperGateOptions = {
  readonly admit: (request: AdmissionRequest) => Promise<Admission>;
  readonly failures: FailedAuthentications;
};

export function developerGate(options: DeveloperGateOptions): Gate {
  const { admit, failures } = options;
  return async (call) => {
    const key = credentialOf(call);
    const fingerprint = fingerprintOf(key);
    const blockedSeconds = failures.blockedSeconds(call.remoteAddress, fingerprint);
    if (blockedSeconds > 0) {
      throw new DomainError("too_many_failed_authentications", { retryAfterSeconds: blockedSeconds });
    }
    const { scope, rateLimited } = call.policy;
    const admission = await admit({ lane: laneOfKey(key), fingerprint, scope, limited: rateLimited });
    if (isKeyInvalid(admission)) failures.addFailure(call.remoteAddress, fingerprint);
    else failures.addValid(fingerprint);
    if (admission.outcome === "admitted" || admission.outcome === "rate_limited") {
      if (admission.window) announceWindow(call, admission.window);
    }
    if (admission.outcome !== "admitted") throw refusal(call, admission);
    call.key = admission.key;
    checkSize(call);
  };
}

export function operatorGate(isOperator: OperatorCheck): Gate {
  return async (call) => {
    if (!isOperator(call)) throw new DomainError("invalid_operator_token");
    checkSize(call);
  };
}

function credentialOf(call: Call): string {
  const credential = bearerCredential(call);
  if (!isWellFormedKey(credential)) throw new DomainError("invalid_api_key");
  return credential;
}

function isKeyInvalid({ outcome }: Admission): boolean {
  return Object.hasOwn(KEY_REASONS, outcome);
}

function refusal(call: Call, admission: Exclude<Admission, { outcome: "admitted" }>): DomainError {
  switch (admission.outcome) {
    case "out_of_scope": {
      const scope = call.policy.scope ?? "";
      return new DomainError("insufficient_scope", {
        message: `The API key lacks the scope "${scope}".`,
        metadata: { scope },
      });
    }
    case "rate_limited": {
      const { limit, secondsLeft } = admission.window;
      return new DomainError("rate_limit_exceeded", {
        message: `The limit of ${limit} requests per minute of this key is exceeded. Wait ${secondsLeft} s.`,
        metadata: { rate_limit_rpm: String(limit) },
        retryAfterSeconds: secondsLeft,
      });
    }
    case "unknown":
    case "revoked":
    case "expired":
      return new DomainError(KEY_REASONS[admission.outcome]);
  }
}

const KEY_REASONS = {
  unknown: "invalid_api_key",
  revoked: "revoked_api_key",
  expired: "expired_api_key",
} as const;

/** Sends the window in the headers of the IETF draft and in those that OpenAI clients read. */
function announceWindow(call: Call, { limit, remaining, secondsLeft }: RateWindow): void {
  call.setResponseHeader("ratelimit-policy", `"rpm";q=${limit};w=60`);
  call.setResponseHeader("ratelimit", `"rpm";r=${remaining};t=${secondsLeft}`);
  call.setResponseHeader("x-ratelimit-limit-requests", String(limit));
  call.setResponseHeader("x-ratelimit-remaining-requests", String(remaining));
  call.setResponseHeader("x-ratelimit-reset-requests", `${secondsLeft}s`);
}

function checkSize({ contentLength, maxBodyBytes }: Call): void {
  if (contentLength !== undefined && contentLength > maxBodyBytes) {
    throw new DomainError("request_too_large", {
      message: `The request body can have at most ${maxBodyBytes} bytes.`,
    });
  }
}
