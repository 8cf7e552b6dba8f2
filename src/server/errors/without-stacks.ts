import type { Socket } from "node:net";

/**
 * When a connection of HTTP/1.1 closes, Node makes an error for each of its requests that are not answered. Nobody
 * looks where they were made, and with that they would be most of what a connection with 2,000 requests costs.
 */
export function withoutStacks(socket: Socket, listen: () => void): void {
  let limit: number;
  socket.once("close", () => {
    limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  listen();
  socket.once("close", () => {
    Error.stackTraceLimit = limit;
  });
}
