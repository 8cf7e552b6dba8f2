import { isIP, isIPv4, isIPv6 } from "node:net";
import type { Member } from "../../api/define-service.ts";
import { measured, type StageSpan } from "../../domain/call-trace.ts";
import { fingerprintOf, isWellFormedKey, laneOfKey, maskOfKey } from "../../domain/credentials.ts";
import { DomainError, type DomainErrorOptions, ERRORS, type Reason } from "../../domain/errors.ts";
import { type AddressRanges, plainAddress } from "../../domain/network.ts";
import { hasRole, type Operator } from "../../domain/operator.ts";
import { scopeBit } from "../../domain/scope.ts";
import type { Actor } from "../../store/action.ts";
import type { Admission, AdmittedKey, Admitter, RateWindow, RefusedKey } from "../../store/admit.ts";
import type { MinuteLimit } from "../../store/bill.ts";
import type { IncomingCall } from "../call.ts";
import type { HeaderSink } from "../http/message.ts";
import { type AuthenticateOperator, operatorOf } from "./authenticate-operator.ts";
import { type SentKey, sentKeyOf } from "./bearer.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";

/** The result of the gate for a call that it admits. */
export type Admitted = {
  /** The caller, as the database proves it again for a change. */
  readonly actor: Actor;
  /** Undefined on the operator listener, and for methods of members that concern no account. */
  readonly key: AdmittedKey | undefined;
  /** Only for methods of members. */
  readonly member?: Member;
  /** Only on the operator listener. */
  readonly operator?: Operator;
  /** Throws if the credential is no longer valid, or lacks the right to the method by now. Takes no slot of a window. */
  readonly recheck: () => Promise<unknown>;
  /** The same for a key; returns it as it is now. Only for methods of keys. */
  readonly readmit?: () => Promise<AdmittedKey>;
  /** For the headers of the response; undefined if the method is not rate limited. */
  readonly window: RateWindow | undefined;
};

/**
 * Admits a call or throws, before any of its body is read: credential (401), scope or role (403), rate (429). The span
 * is that of the gate; undefined if the call is not recorded.
 */
export type Gate = (call: IncomingCall, span: StageSpan | undefined) => Promise<Admitted>;

type DeveloperGateOptions = {
  readonly admitter: Pick<Admitter, "admit">;
  readonly failures: FailedAuthentications;
  /** Whose headers about the address of the caller count; undefined for none. */
  readonly trustedProxies?: AddressRanges | undefined;
};

export function developerGate({ admitter, failures, trustedProxies }: DeveloperGateOptions): Gate {
  const admit = async (call: IncomingCall, limited: boolean, span: StageSpan | undefined) => {
    const sent = sentKeyOf(call);
    const { value: key } = sent;
    if (!isWellFormedKey(key)) throw keyError("invalid_api_key", sent);
    const fingerprint = fingerprintOf(key);
    const address = clientAddress(call, trustedProxies);
    failures.refuseBlocked(address, fingerprint);
    const { scope, whileSuspended } = call.policy;
    const request = {
      lane: laneOfKey(key),
      fingerprint,
      scope,
      limited,
      whileSuspended,
      address,
    };
    const admission = await measured(span?.startStage("admission"), admitter.admit(request));
    if (isKeyInvalid(admission)) failures.addFailure(address, fingerprint);
    else failures.addValid(fingerprint);
    if (admission.outcome === "address_not_allowed") throw addressError(address, admission.key);
    if (admission.outcome !== "admitted") throw admissionError(call, admission, sent);
    return admission;
  };
  return async (call, span) => {
    const { key, window } = await admit(call, call.policy.rateLimited, span);
    const readmit = async () => (await admit(call, false, undefined)).key;
    return { actor: actorOf(call, key), key, window, recheck: readmit, readmit };
  };
}

function actorOf({ policy }: IncomingCall, key: AdmittedKey): Actor {
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

type OperatorGateOptions = {
  readonly authenticate: AuthenticateOperator;
  /** Records that the operator lacks the role for a call. */
  readonly logRefusal: (call: IncomingCall, actor: Actor, error: DomainError) => Promise<void>;
};

/** Admits an operator or throws: token (401), role (403). */
export function operatorGate({ authenticate, logRefusal }: OperatorGateOptions): Gate {
  const admit = async (call: IncomingCall, isUse: boolean) => {
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
  };
  return async (call) => {
    const admitted = await admit(call, true);
    const recheck = async () => void (await admit(call, false));
    return { ...admitted, key: undefined, window: undefined, recheck };
  };
}

/** The 413 of a call that announces too large a body; a body without an announced size is checked as it is read. */
export function checkAnnouncedSize({ contentLength, maxBodyBytes }: IncomingCall): void {
  if (contentLength !== undefined && contentLength > maxBodyBytes) {
    throw new DomainError("request_too_large", {
      message: `The request body can have at most ${maxBodyBytes} bytes.`,
    });
  }
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

function isKeyInvalid({ outcome }: Admission): boolean {
  return Object.hasOwn(KEY_REASONS, outcome);
}

function admissionError(
  call: IncomingCall,
  admission: Exclude<Admission, { outcome: "admitted" | "address_not_allowed" }>,
  sent: SentKey,
): DomainError {
  switch (admission.outcome) {
    case "out_of_scope":
      return new ScopeError(call.policy.scope ?? "", admission);
    case "rate_limited":
      return new RateLimitError(admission);
    case "suspended":
      return new GateError("account_suspended", admission.key);
    case "unknown":
      return keyError(KEY_REASONS.unknown, sent);
    case "revoked":
    case "expired":
      return keyError(KEY_REASONS[admission.outcome], sent, admission.key);
  }
}

const KEY_REASONS = {
  unknown: "invalid_api_key",
  revoked: "revoked_api_key",
  expired: "expired_api_key",
} as const;

type KeyReason = (typeof KEY_REASONS)[keyof typeof KEY_REASONS];

/** The 429 of a key whose minute is full. */
export class RateLimitError extends GateError {
  readonly window: RateWindow;

  constructor({ key, window }: { readonly key: RefusedKey; readonly window: RateWindow }) {
    const { limit, secondsLeft } = window;
    super("rate_limit_exceeded", key, {
      message: `The limit of ${limit} requests per minute of this key is exceeded. Wait ${secondsLeft} s.`,
      metadata: { rate_limit_rpm: String(limit) },
      retryAfterSeconds: secondsLeft,
    });
    this.window = window;
  }
}

/** The 403 of a key without the scope of a method. The call takes no slot of the window. */
export class ScopeError extends GateError {
  readonly window: RateWindow | undefined;

  constructor(scope: string, { key, window }: { readonly key: RefusedKey; readonly window: RateWindow | undefined }) {
    super("insufficient_scope", key, {
      message: `The API key lacks the scope "${scope}".`,
      metadata: { scope },
    });
    this.window = window;
  }
}

/** Announces the window in the headers of the IETF draft and in those that OpenAI clients read. */
export function setRateHeaders(response: HeaderSink, { limit, remaining, secondsLeft }: RateWindow): void {
  response.setHeader("ratelimit-policy", `"rpm";q=${limit};w=60`);
  response.setHeader("ratelimit", `"rpm";r=${remaining};t=${secondsLeft}`);
  response.setHeader("x-ratelimit-limit-requests", String(limit));
  response.setHeader("x-ratelimit-remaining-requests", String(remaining));
  response.setHeader("x-ratelimit-reset-requests", `${secondsLeft}s`);
}

/** Announces the limits of the minute of a metered call beside its rate window: of each metric the tightest. */
export function setLimitHeaders(response: HeaderSink, window: RateWindow | undefined, limits: readonly MinuteLimit[]): void {
  const tightest = new Map<string, MinuteLimit>();
  for (const limit of limits) {
    const other = tightest.get(limit.metric);
    if (!other || limit.remaining < other.remaining) tightest.set(limit.metric, limit);
  }
  const items = [...tightest.values()];
  const policies = items.map(({ metric, amount }) => `"${metric}";q=${amount};w=60`);
  const states = items.map(({ metric, remaining, secondsLeft }) => `"${metric}";r=${remaining};t=${secondsLeft}`);
  if (window) {
    policies.unshift(`"rpm";q=${window.limit};w=60`);
    states.unshift(`"rpm";r=${window.remaining};t=${window.secondsLeft}`);
  }
  response.setHeader("ratelimit-policy", policies.join(", "));
  response.setHeader("ratelimit", states.join(", "));
  const tokens = tightest.get("tokens");
  if (!tokens) return;
  response.setHeader("x-ratelimit-limit-tokens", String(tokens.amount));
  response.setHeader("x-ratelimit-remaining-tokens", String(tokens.remaining));
  response.setHeader("x-ratelimit-reset-tokens", `${tokens.secondsLeft}s`);
}

/** No address, so it is in no range of a key. */
export const UNKNOWN_ADDRESS = "unknown";

/**
 * The address of the caller. Behind trusted proxies, it is the nearest address in Forwarded (RFC 7239) or X-Forwarded-For that is not
 * of a trusted proxy. An entry that is no address ends the search at the trusted proxy that sent it. The address is unknown if
 * Forwarded is malformed or the two headers differ: most proxies set one of them and pass on the other as the caller sent it, and a
 * caller must not get the address of a proxy by that.
 */
export function clientAddress(call: Pick<IncomingCall, "remoteAddress" | "headers">, proxies: AddressRanges | undefined): string {
  const { remoteAddress } = call;
  if (!proxies?.has(remoteAddress)) return remoteAddress;
  const forwarded = call.headers("forwarded");
  const forwardedFor = call.headers("x-forwarded-for");
  const found = [];
  if (forwarded.length > 0) {
    const hops = forwardedHops(forwarded.join(","));
    found.push(hops ? nearest(remoteAddress, hops, proxies) : UNKNOWN_ADDRESS);
  }
  if (forwardedFor.length > 0) {
    found.push(nearest(remoteAddress, forwardedFor.join(",").split(","), proxies));
  }
  const [address = remoteAddress, other = address] = found;
  return address === other ? address : UNKNOWN_ADDRESS;
}

/** `hops` are in the order of the header: the last one was added by the proxy that connects to us. */
function nearest(remoteAddress: string, hops: readonly (string | undefined)[], proxies: AddressRanges): string {
  let address = remoteAddress;
  for (const hop of hops.toReversed()) {
    const next = hop === undefined ? undefined : addressOf(hop.trim());
    if (next === undefined) return address;
    address = next;
    if (!proxies.has(address)) return address;
  }
  return address;
}

// At each place, only one part of the pattern matches spaces, so the time grows with the length of the header, not with its square.
const PAIR = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:([^\s;,"]+)|"((?:[^"\\]|\\.)*)")[ \t]*)?([;,]|$)/y;

/** The values of "for". Undefined if the header is malformed, because its parts cannot be separated. */
function forwardedHops(header: string): (string | undefined)[] | undefined {
  const hops: (string | undefined)[] = [undefined];
  PAIR.lastIndex = 0;
  for (;;) {
    const match = PAIR.exec(header);
    if (!match) return undefined;
    const [, name, token, quoted, separator] = match;
    if (name?.toLowerCase() === "for") hops[hops.length - 1] = token ?? quoted?.replace(/\\(.)/g, "$1");
    if (separator === "") return hops;
    if (separator === ",") hops.push(undefined);
  }
}

/** An address with or without a port, in brackets if it is an IPv6 address with one. */
function addressOf(hop: string): string | undefined {
  if (isIP(hop) !== 0) return plainAddress(hop);
  const [, v6, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(hop) ?? [];
  if (v6 !== undefined && isIPv6(v6)) return plainAddress(v6);
  return v4 !== undefined && isIPv4(v4) ? v4 : undefined;
}
