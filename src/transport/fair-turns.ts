import type { HttpRequest } from "./http.ts";

/** So many requests are begun in one turn of the event loop; each connection with more of them gets its share. */
const REQUESTS_PER_TURN = 64;

/**
 * One packet of 64 KiB can hold 2,000 requests, and the end of each. Begun all at once they would hold up everybody else;
 * and nothing is worth any work that was taken back before its turn came.
 */
export class FairTurns {
  /** Connections with requests that wait, in the order in which they are asked next. */
  readonly #waiting = new Map<object, (() => void)[]>();
  #begun = 0;
  #next: NodeJS.Immediate | undefined;

  take(request: HttpRequest, begin: () => void): void {
    const connection = connectionOf(request);
    if (!connection) return;
    const waiting = this.#waiting.get(connection);
    if (!waiting && this.#begun < REQUESTS_PER_TURN) {
      this.#begin(begin);
      return;
    }
    const later = () => {
      if (connectionOf(request)) this.#begin(begin);
    };
    if (waiting) waiting.push(later);
    else this.#waiting.set(connection, [later]);
  }

  #begin(begin: () => void): void {
    this.#begun++;
    this.#next ??= setImmediate(this.#beginWaiting);
    begin();
  }

  #beginWaiting = (): void => {
    this.#next = undefined;
    this.#begun = 0;
    for (const [connection, waiting] of this.#waiting) {
      if (this.#begun >= REQUESTS_PER_TURN) break;
      this.#waiting.delete(connection);
      waiting.shift()?.();
      if (waiting.length > 0) this.#waiting.set(connection, waiting);
    }
  };
}

/** Undefined where the request was taken back. */
function connectionOf(request: HttpRequest): object | undefined {
  if (!("stream" in request)) return request.socket.destroyed ? undefined : request.socket;
  return request.stream.closed ? undefined : request.stream.session;
}
