import { DomainError } from "../domain/errors.ts";
import type { HttpRequest, HttpResponse } from "./http.ts";

export type OpenCallLimits = {
  /** Calls without a key that one process serves at a time. */
  readonly openCalls: number;
  /** Streams among them, such as those that watch the health, on one connection. */
  readonly openStreamsPerConnection: number;
};

/** How many calls nobody needs a key for may be open: they cost memory for as long as the caller likes. */
export class OpenCalls {
  readonly #limits: OpenCallLimits;
  readonly #streams = new WeakMap<object, number>();
  #calls = 0;

  constructor(limits: OpenCallLimits) {
    this.#limits = limits;
  }

  /** Counts a call until its answer is out, which takes as long as the caller takes to read it; throws "overloaded". */
  enter(isStream: boolean, request: HttpRequest, response: HttpResponse): void {
    const connection = connectionOf(request);
    const streams = this.#streams.get(connection) ?? 0;
    if (this.#calls >= this.#limits.openCalls) throw new DomainError("overloaded");
    if (isStream && streams >= this.#limits.openStreamsPerConnection) {
      throw new DomainError("overloaded", {
        message: `A connection can have ${this.#limits.openStreamsPerConnection} open streams without a key.`,
      });
    }
    this.#calls++;
    if (isStream) this.#streams.set(connection, streams + 1);
    response.once("close", () => {
      this.#calls--;
      if (isStream) this.#streams.set(connection, (this.#streams.get(connection) ?? 1) - 1);
    });
  }
}

function connectionOf(request: HttpRequest): object {
  return ("stream" in request ? request.stream.session : undefined) ?? request.socket;
}
