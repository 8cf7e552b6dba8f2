import type { Actor } from "../../database/action.ts";
import { measured, type StageSpan } from "../../domain/call-trace.ts";
import { fingerprintOf, isWellFormedKey, laneOfKey, maskOfKey } from "../../domain/credentials.ts";
import { DomainError, type DomainErrorOptions, ERRORS, type Reason } from "../../domain/errors.ts";
import { inTurnsOf } from "../../domain/fairness.ts";
import type { AddressRanges } from "../../domain/network.ts";
import { scopeBit } from "../../domain/scope.ts";
import type { Admission, AdmittedKey, Admitter, RefusedKey } from "../../keys/admit.ts";
import type { Call } from "../call.ts";
import { type SentKey, sentKeyOf } from "../credentials/bearer.ts";
import type { FailedAuthentications } from "../credentials/failed-authentications.ts";
import { clientAddress, UNKNOWN_ADDRESS } from "../http/message.ts";
import { beforeDeadline } from "./deadline.ts";
import type { AdmittedCall, Interceptor } from "./interceptor.ts";
import { setRateHeaders } from "./limit-rate.ts";

export type KeyAuthentication = {
  readonly admitter: Pick<Admitter, "admit">;
  readonly failures: FailedAuthentications;
  /** Whose headers about the address of the caller count; undefined for none. */
  readonly trustedProxies?: AddressRanges | undefined;
};

/** Admits the call of a key: the key exists, is active, has the scope, and may be used from the address. */
export function authenticateKey(options: KeyAuthentication): Interceptor<Call, AdmittedCall> {
  return (next) => async (call) => {
    const span = call.trace?.startStage("gate");
    const admission = await measured(span, beforeDeadline(call, admissionOf(call, options, call.policy.rateLimited, span)));
    const { key, window, outcome } = admission;
    const readmit = async () => (await admissionOf(call, options, false, undefined)).key;
    const isOverLimit = outcome === "rate_limited";
    const admitted = { actor: actorOf(call, key), key, window, isOverLimit, recheck: readmit, readmit };
    await inTurnsOf(key.accountId, () => next(Object.assign(call, { admitted })));
  };
}

async function admissionOf(
  call: Call,
  { admitter, failures, trustedProxies }: KeyAuthentication,
  limited: boolean,
  span: StageSpan | undefined,
): Promise<Extract<Admission, { outcome: "admitted" | "rate_limited" }>> {
  const sent = sentKeyOf(call);
  const { value: key } = sent;
  if (!isWellFormedKey(key)) throw keyError("invalid_api_key", sent);
  const fingerprint = fingerprintOf(key);
  const address = clientAddress(call, trustedProxies);
  failures.refuseBlocked(address, fingerprint);
  const { scope, whileSuspended } = call.policy;
  const request = { lane: laneOfKey(key), fingerprint, scope, limited, whileSuspended, address };
  const admission = await measured(span?.startStage("admission"), admitter.admit(request));
  if (Object.hasOwn(KEY_REASONS, admission.outcome)) failures.addFailure(address, fingerprint);
  else failures.addValid(fingerprint);
  switch (admission.outcome) {
    case "admitted":
    case "rate_limited":
      return admission;
    case "address_not_allowed":
      throw addressError(address, admission.key);
    case "out_of_scope":
      if (admission.window) setRateHeaders(call, admission.window);
      throw scopeError(scope ?? "", admission.key);
    case "suspended":
      throw new GateError("account_suspended", admission.key);
    case "unknown":
      throw keyError(KEY_REASONS.unknown, sent);
    case "revoked":
    case "expired":
      throw keyError(KEY_REASONS[admission.outcome], sent, admission.key);
  }
}

function actorOf({ policy }: Call, key: AdmittedKey): Actor {
  return {
    kind: "key",
    id: key.keyId,
    name: "",
    accountId: key.accountId,
    fingerprint: key.fingerprint,
    scope: policy.scope && scopeBit(policy.scope),
    isAllowedWhileSuspended: policy.whileSuspended,
    cidrs: key.allowedCidrs,
  };
}

/** A refusal of a call whose account and key are known, unless the key does not exist. */
export class GateError extends DomainError {
  readonly key: RefusedKey | undefined;

  constructor(reason: Reason, key: RefusedKey | undefined, options?: DomainErrorOptions) {
    super(reason, options);
    this.key = key;
  }
}

/** Names the header, because some clients send another key than the one that was set last. */
function keyError(reason: KeyReason, { value, header }: SentKey, key?: RefusedKey): DomainError {
  const mask = maskOfKey(value);
  const detail =
    mask === undefined
      ? `The value of the header '${header}' does not have the form of a key.`
      : `The key in the header '${header}' is ${mask}.`;
  return new GateError(reason, key, { message: `${ERRORS[reason].message} ${detail}` });
}

/** Names the address, because it can be that of a proxy. */
function addressError(address: string, key: RefusedKey): DomainError {
  const message =
    address === UNKNOWN_ADDRESS
      ? "The API key can be used only from some addresses, and that of the caller is unknown: Forwarded is malformed, or Forwarded and X-Forwarded-For differ."
      : `The API key cannot be used from the address ${address}.`;
  return new GateError("address_not_allowed", key, {
    message,
    metadata: { address },
  });
}

const KEY_REASONS = {
  unknown: "invalid_api_key",
  revoked: "revoked_api_key",
  expired: "expired_api_key",
} as const;

type KeyReason = (typeof KEY_REASONS)[keyof typeof KEY_REASONS];

/** The 403 of a key without the scope of a method. The call takes no slot of the window. */
function scopeError(scope: string, key: RefusedKey): DomainError {
  return new GateError("insufficient_scope", key, { message: `The API key lacks the scope "${scope}".`, metadata: { scope } });
}
