/**
 * How far a call has come with its upstreams. It is shared, not an event, because a caller can leave between two
 * events, and the charge depends on what had happened by then.
 */
export class Progress {
  /** A request was started at an upstream, and that upstream has not failed. */
  isAsked = false;
  /** The last upstream that a request was meant for; undefined while there was none. */
  upstream: string | undefined;
  /** Text that the upstream produced and the reader had not taken when the call was cancelled. */
  unread = "";
}
