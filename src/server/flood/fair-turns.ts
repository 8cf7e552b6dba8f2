import type { Http2ServerRequest, Http2Session } from "node:http2";
import type { HttpRequest } from "../http.ts";

/** So many requests are begun in one turn of the event loop; each session with more of them gets its share. */
const REQUESTS_PER_TURN = 64;

/**
 * One packet of 64 KiB can hold 2,000 requests, and the end of each. Begun all at once they would hold up everybody else;
 * and nothing is worth any work that was taken back before its turn came.
 */
export class FairTurns {
  /** Sessions with requests that wait, in the order in which they are asked next. */
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

/** Undefined where the request was taken back. */
function sessionOf({ stream }: Http2ServerRequest): Http2Session | undefined {
  return stream.closed ? undefined : stream.session;
}
