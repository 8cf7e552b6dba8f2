import type { Socket } from "node:net";

/**
 * Ends a connection whose caller may still be sending. What it sends is read and thrown away until it closes its side:
 * a connection that is closed with something unread is reset, and the answer is lost with it.
 */
export function lingeringClose(socket: Socket, mostMs: number): void {
  const timer = setTimeout(() => socket.destroy(), mostMs).unref();
  socket.once("close", () => clearTimeout(timer));
  socket.end();
  socket.resume();
}
