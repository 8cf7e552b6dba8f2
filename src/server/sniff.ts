import type { Socket } from "node:net";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** What is handed on at once: a connection that is cut for what one piece holds reads no further ones. */
const PIECE_BYTES = 4_096;

export type HttpVersion = "http1" | "http2";

/** Stays on the connection: it must keep nothing of what was read alive. */
const ignore = () => undefined;

/**
 * Reads just enough of a new connection to tell HTTP/2 with prior knowledge from HTTP/1.1, and puts it back. A
 * connection that stays silent is ended.
 */
export function sniff(
  socket: Socket,
  timeoutMs: number,
  found: (version: HttpVersion, bytes: number) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const done = () => {
    clearTimeout(timer);
    socket.off("readable", read);
    socket.off("close", done);
  };
  const read = () => {
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    }
    const compared = Math.min(seen.length, PREFACE.length);
    const matches = seen.subarray(0, compared).equals(PREFACE.subarray(0, compared));
    if (seen.length === 0 || (matches && compared < PREFACE.length)) return;
    done();
    for (let end = seen.length; end > 0; end -= PIECE_BYTES) {
      socket.unshift(seen.subarray(Math.max(end - PIECE_BYTES, 0), end));
    }
    found(matches ? "http2" : "http1", seen.length);
  };
  // Until a protocol has taken the connection, its errors are nobody's; afterwards that has its own ear for them.
  socket.on("error", ignore);
  socket.on("close", done);
  socket.on("readable", read);
}
