import type { Reason } from "../domain/errors.ts";

/** Why a generation ends before its upstream is done. */
export type Stop = "gone" | "deadline_exceeded" | "too_long" | "revoked_api_key" | "unavailable";

type Rule = {
  /** Of the error that the caller gets, and of the stored answer. */
  readonly reason: Reason;
  /** Of the error; the text of the table of errors if undefined. */
  readonly message: string | undefined;
  /**
   * Whether the caller pays for the input as soon as an upstream was asked. Otherwise the stop is ours, and only a
   * stream pays, for what it delivered.
   */
  readonly paidOnceAsked: boolean;
  /** The text in the ledger row. */
  readonly text: string;
};

const CHARGED = "What it used until then is charged.";

/** What each stop means for the charge. */
export const STOPS: Readonly<Record<Stop, Rule>> = {
  gone: { reason: "unavailable", message: undefined, paidOnceAsked: true, text: "the caller left" },
  deadline_exceeded: {
    reason: "deadline_exceeded",
    message: `The call took longer than its deadline. ${CHARGED}`,
    paidOnceAsked: true,
    text: "the caller's deadline passed",
  },
  too_long: {
    reason: "deadline_exceeded",
    message: `The call took 10 minutes, the longest time for a call. ${CHARGED}`,
    paidOnceAsked: true,
    text: "stopped after 10 minutes, the longest time for a call",
  },
  revoked_api_key: {
    reason: "revoked_api_key",
    message: `The API key was revoked during the call. ${CHARGED}`,
    paidOnceAsked: true,
    text: "stopped, the API key was revoked",
  },
  unavailable: {
    reason: "unavailable",
    message: undefined,
    paidOnceAsked: false,
    text: "stopped, the server shut down",
  },
};

export const UPSTREAM_FAILED_TEXT = "the upstream broke off";
