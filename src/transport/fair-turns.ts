import type { Http2Session } from "node:http2";
import type { HttpRequest } from "./http.ts";

/** So many requests of one session are begun in one turn of the event loop; those of others come between the rest. */
const REQUESTS_PER_TURN = 64;

/**
 * One packet of 64 KiB can hold 2,000 requests, and the end of each. Begun all at once they would hold up everybody else;
 * and nothing is worth any work that was taken back before its turn came.
 */
export class FairTurns {
  readonly #sessions = new WeakMap<Http2Session, { begun: number; readonly waiting: (() => void)[] }>();

  take(request: HttpRequest, begin: () => void): void {
    if (!("stream" in request)) {
      begin();
      return;
    }
    const { stream } = request;
    const { session } = stream;
    if (stream.closed || !session) return;
    const turn = this.#turnOf(session);
    if (turn.begun < REQUESTS_PER_TURN) {
      turn.begun++;
      begin();
      return;
    }
    turn.waiting.push(() => {
      if (stream.closed) return;
      turn.begun++;
      begin();
    });
  }

  #turnOf(session: Http2Session) {
    const known = this.#sessions.get(session);
    if (known) return known;
    const turn = { begun: 0, waiting: [] as (() => void)[] };
    this.#sessions.set(session, turn);
    const next = () => {
      turn.begun = 0;
      while (turn.begun < REQUESTS_PER_TURN) {
        const begin = turn.waiting.shift();
        if (!begin) break;
        begin();
      }
      if (turn.begun > 0) setImmediate(next);
      else this.#sessions.delete(session);
    };
    setImmediate(next);
    return turn;
  }
}
