import type { Socket } from "node:net";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export type HttpVersion = "http1" | "http2";

/** Defined outside of sniff(): it stays on the socket, and a closure would keep the bytes in memory. */
const ignore = () => undefined;

/**
 * Reads just enough of a new connection to distinguish HTTP/2 with prior knowledge from HTTP/1.1, and passes it
 * on with the paused socket. A silent connection is closed.
 */
export function sniff(
  socket: Socket,
  timeoutMs: number,
  found: (version: HttpVersion, firstBytes: Buffer) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const stop = () => {
    clearTimeout(timer);
    socket.off("data", read);
    socket.off("close", stop);
  };
  const read = (bytes: Buffer) => {
    seen = seen.length === 0 ? bytes : Buffer.concat([seen, bytes]);
    const compared = Math.min(seen.length, PREFACE.length);
    const matches = seen.subarray(0, compared).equals(PREFACE.subarray(0, compared));
    if (matches && compared < PREFACE.length) return;
    stop();
    socket.pause();
    found(matches ? "http2" : "http1", seen);
  };
  // Ignores errors of the socket; "close" follows each of them.
  socket.on("error", ignore);
  socket.on("close", stop);
  socket.on("data", read);
}
