import type { Socket } from "node:net";

/**
 * Ends a connection whose caller may still be sending. Further data is read and discarded until the caller
 * closes its side: closing a connection with unread data resets it, and the response is lost.
 */
export function lingeringClose(socket: Socket, mostMs: number): void {
  const timer = setTimeout(() => socket.destroy(), mostMs).unref();
  socket.once("close", () => clearTimeout(timer));
  socket.end();
  socket.resume();
}
