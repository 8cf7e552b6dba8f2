import type { CallTrace } from "../domain/call-trace.ts";
import type { Reason } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import type { Prompt } from "../domain/prompt.ts";
import type { AdmittedKey } from "../store/admit.ts";
import type { Charge } from "../store/bill.ts";
import type { UpstreamEnd } from "../upstreams/upstream.ts";
import type { Size } from "./generation-size.ts";

/** Why a generation stopped. */
export type Ending =
  | { readonly kind: "completed"; readonly done: UpstreamEnd }
  | { readonly kind: "failed"; readonly error: unknown }
  /** The error that the reader gets. */
  | { readonly kind: "stopped"; readonly why: Stop; readonly error: unknown };

export type GenerationState =
  | { readonly kind: "running" }
  /** The reader disconnected; the generation continues, for a retry with the same idempotency key. */
  | { readonly kind: "detached" }
  | { readonly kind: "settling" }
  /** The hold has ended. The charge is undefined if nothing was charged. */
  | { readonly kind: "settled"; readonly charge: Charge | undefined }
  /** The hold could not be ended; another server releases it. */
  | { readonly kind: "unsettled" };

type Kind = GenerationState["kind"];

const NEXT: Readonly<Record<Kind, readonly Kind[]>> = {
  running: ["detached", "settling"],
  detached: ["settling"],
  settling: ["settled", "unsettled"],
  settled: [],
  unsettled: [],
};

export function canBecome(from: Kind, to: Kind): boolean {
  return NEXT[from].includes(to);
}

/** The parameters of a generation whose hold is placed. */
export type GenerationSpec = {
  readonly id: string;
  readonly key: AdmittedKey;
  readonly requestId: string;
  readonly trace: CallTrace | undefined;
  /** The caller's end user; empty if unknown. */
  readonly user: string;
  readonly model: Model;
  readonly prompt: Prompt;
  readonly size: Size;
  /** The output limit, if it is lower than the call asked for. */
  readonly loweredMaxTokens: number | undefined;
  /** With a key, the answer is stored for a retry with the same key. */
  readonly idempotencyKey: string | undefined;
};

/** The reasons why a generation ends before its upstream is done. */
export type Stop = "disconnected" | "deadline_exceeded" | "too_long" | "revoked_api_key" | "unavailable";

type Rule = {
  /** The reason in the error that the caller gets, and in the stored answer. */
  readonly reason: Reason;
  /** The message of the error; undefined for the default text of the reason. */
  readonly message: string | undefined;
  /**
   * Whether the caller pays for the input once the request was sent to an upstream. False if the server
   * causes the stop: then only a stream is charged, for the pieces it delivered.
   */
  readonly chargedOnceSent: boolean;
  /** The text in the ledger row. */
  readonly text: string;
};

const CHARGED = "Usage until then is charged.";

/** How each stop is charged. */
export const STOPS: Readonly<Record<Stop, Rule>> = {
  disconnected: {
    reason: "unavailable",
    message: undefined,
    chargedOnceSent: true,
    text: "the caller disconnected",
  },
  deadline_exceeded: {
    reason: "deadline_exceeded",
    message: `The call took longer than its deadline. ${CHARGED}`,
    chargedOnceSent: true,
    text: "the caller's deadline passed",
  },
  too_long: {
    reason: "deadline_exceeded",
    message: `The call reached the limit of 10 minutes. ${CHARGED}`,
    chargedOnceSent: true,
    text: "stopped after 10 minutes",
  },
  revoked_api_key: {
    reason: "revoked_api_key",
    message: `The API key was revoked during the call. ${CHARGED}`,
    chargedOnceSent: true,
    text: "stopped, the API key was revoked",
  },
  unavailable: {
    reason: "unavailable",
    message: undefined,
    chargedOnceSent: false,
    text: "stopped, the server shut down",
  },
};

export const UPSTREAM_FAILED_TEXT = "the upstream failed";
