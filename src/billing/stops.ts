import type { Reason } from "../domain/errors.ts";

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
  readonly paidOnceSent: boolean;
  /** The text in the ledger row. */
  readonly text: string;
};

const CHARGED = "Usage until then is charged.";

/** How each stop is charged. */
export const STOPS: Readonly<Record<Stop, Rule>> = {
  disconnected: {
    reason: "unavailable",
    message: undefined,
    paidOnceSent: true,
    text: "the caller disconnected",
  },
  deadline_exceeded: {
    reason: "deadline_exceeded",
    message: `The call took longer than its deadline. ${CHARGED}`,
    paidOnceSent: true,
    text: "the caller's deadline passed",
  },
  too_long: {
    reason: "deadline_exceeded",
    message: `The call reached the limit of 10 minutes. ${CHARGED}`,
    paidOnceSent: true,
    text: "stopped after 10 minutes",
  },
  revoked_api_key: {
    reason: "revoked_api_key",
    message: `The API key was revoked during the call. ${CHARGED}`,
    paidOnceSent: true,
    text: "stopped, the API key was revoked",
  },
  unavailable: {
    reason: "unavailable",
    message: undefined,
    paidOnceSent: false,
    text: "stopped, the server shut down",
  },
};

export const UPSTREAM_FAILED_TEXT = "the upstream failed";
