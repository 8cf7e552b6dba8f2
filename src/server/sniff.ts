import type { Socket } from "node:net";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/**
 * Bytes are put back in pieces of this size: a connection that is closed because of one piece reads no
 * further ones.
 */
const PIECE_BYTES = 4_096;

export type HttpVersion = "http1" | "http2";

/** Defined outside of sniff(): it stays on the socket, and a closure would keep the bytes read in memory. */
const ignore = () => undefined;

/**
 * Reads just enough of a new connection to distinguish HTTP/2 with prior knowledge from HTTP/1.1, and puts it
 * back. A silent connection is closed.
 */
export function sniff(
  socket: Socket,
  timeoutMs: number,
  onVersion: (version: HttpVersion, bytes: number) => void,
): void {
  let received: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const done = () => {
    clearTimeout(timer);
    socket.off("readable", read);
    socket.off("close", done);
  };
  const read = () => {
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    }
    const compared = Math.min(received.length, PREFACE.length);
    const matches = received.subarray(0, compared).equals(PREFACE.subarray(0, compared));
    if (received.length === 0 || (matches && compared < PREFACE.length)) return;
    done();
    for (let end = received.length; end > 0; end -= PIECE_BYTES) {
      socket.unshift(received.subarray(Math.max(end - PIECE_BYTES, 0), end));
    }
    onVersion(matches ? "http2" : "http1", received.length);
  };
  // Ignores errors until an HTTP server takes the connection and adds its own listener.
  socket.on("error", ignore);
  socket.on("close", done);
  socket.on("readable", read);
}
