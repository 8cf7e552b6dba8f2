/** Headers in order, with duplicates. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** A request as it is sent, valid or not. */
export type WireRequest = {
  readonly http: 1 | 2;
  readonly method: string;
  readonly target: string;
  readonly headers: HeaderList;
  readonly body: Buffer;
  /** The number of bytes of each write. */
  readonly pieceBytes: number;
  /**
   * "length": with a content-length. "unknown": in chunks over HTTP/1.1, without a content-length over HTTP/2.
   * "open": the body never ends.
   */
  readonly framing: "length" | "unknown" | "open";
  readonly trailers: HeaderList;
  /** HTTP/1.1: whether a second request follows on the same connection. */
  readonly isFollowed: boolean;
};

/** Everything that a caller can see of the response. */
export type Exchange = {
  /** The statuses of informational responses. */
  readonly interim: readonly number[];
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
  readonly trailers: HeaderList;
  /** "complete", "closed" (HTTP/1.1) or "reset" with its code (HTTP/2). */
  readonly end: string;
  /** The status of the second request on the connection, or "closed"; empty if none was sent. */
  readonly next: string;
};

/** Longer than any call of the test. */
export const PATIENCE_MS = 30_000;

export function piecesOf(bytes: Buffer, size: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}
