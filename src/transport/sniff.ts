import type { Socket } from "node:net";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export type HttpVersion = "http1" | "http2";

/** Stays on the connection: it must keep nothing of what was read alive. */
const ignore = () => undefined;

/**
 * Reads just enough of a new connection to tell HTTP/2 with prior knowledge from HTTP/1.1, and puts it back. A
 * connection that stays silent is ended.
 */
export function sniff(socket: Socket, timeoutMs: number, found: (version: HttpVersion) => void): void {
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
    socket.unshift(seen);
    found(matches ? "http2" : "http1");
  };
  // Until a protocol has taken the connection, its errors are nobody's; afterwards that has its own ear for them.
  socket.on("error", ignore);
  socket.on("close", done);
  socket.on("readable", read);
}
