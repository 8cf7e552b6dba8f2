import type { Http2ServerRequest, Http2Session } from "node:http2";
import type { HttpRequest } from "../http.ts";

/** Requests started in one turn of the event loop. Sessions with waiting requests take turns. */
const REQUESTS_PER_TURN = 64;

/**
 * One packet of 64 KiB can hold 2,000 requests and their resets. Starting all of them at once would delay
 * every other caller, and a request that is reset while it waits is never started.
 */
export class FairTurns {
  /** Sessions with waiting requests, in the order in which they are served. */
  readonly #waiting = new Map<Http2Session, (() => void)[]>();
  #begun = 0;
  #next: NodeJS.Immediate | undefined;

  take(request: HttpRequest, begin: () => void): void {
    if (!("stream" in request)) {
      begin();
      return;
    }
    const session = sessionOf(request);
    if (!session) return;
    const waiting = this.#waiting.get(session);
    if (!waiting && this.#begun < REQUESTS_PER_TURN) {
      this.#begin(begin);
      return;
    }
    const later = () => {
      if (sessionOf(request)) this.#begin(begin);
    };
    if (waiting) waiting.push(later);
    else this.#waiting.set(session, [later]);
  }

  #begin(begin: () => void): void {
    this.#begun++;
    this.#next ??= setImmediate(this.#beginWaiting);
    begin();
  }

  #beginWaiting = (): void => {
    this.#next = undefined;
    this.#begun = 0;
    for (const [session, waiting] of this.#waiting) {
      if (this.#begun >= REQUESTS_PER_TURN) break;
      this.#waiting.delete(session);
      waiting.shift()?.();
      if (waiting.length > 0) this.#waiting.set(session, waiting);
    }
  };
}

/** Undefined if the request was reset. */
function sessionOf({ stream }: Http2ServerRequest): Http2Session | undefined {
  return stream.closed ? undefined : stream.session;
}
