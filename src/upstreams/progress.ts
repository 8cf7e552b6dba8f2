import type { Usage } from "../domain/usage.ts";

/** The last usage that an upstream reported for a reply. If it was reported before the finish reason, only its input is final. */
export type UsageReport = { readonly usage: Usage; readonly isFinal: boolean };

/**
 * What a call has done at its upstreams so far. It is shared state, not an event, because a caller can
 * disconnect between two events, and the charge depends on the state at that moment.
 */
export class Progress {
  /** A request was started at an upstream, and that upstream has not failed. */
  wasSent = false;
  /** The upstream of the last attempt; undefined before the first attempt. */
  upstream: string | undefined;
  /** All texts that were received from the upstream but not yet read when the call was cancelled. */
  unread = "";
  /** The report for a reply that was cancelled or failed; undefined if the upstream had not reported any usage. */
  report: UsageReport | undefined;
}
