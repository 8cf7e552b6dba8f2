import type { Duplex } from "node:stream";

/**
 * When an HTTP/1.1 connection closes, Node creates an error for each unanswered request. Nothing reads their
 * stack traces, which would be most of the cost of a connection with 2,000 requests.
 */
export function withoutStacks(socket: Duplex, listen: () => void): void {
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
