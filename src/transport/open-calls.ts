import type { HttpRequest, HttpResponse } from "./http.ts";

type OpenCallLimits = {
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

  /** Counts a call until its answer is out, which takes as long as the caller takes to read it; false if it is one too many. */
  enter(isStream: boolean, request: HttpRequest, response: HttpResponse): boolean {
    const { openCalls, openStreamsPerConnection } = this.#limits;
    const connection = connectionOf(request);
    const streams = this.#streams.get(connection) ?? 0;
    if (this.#calls >= openCalls || (isStream && streams >= openStreamsPerConnection)) return false;
    this.#calls++;
    if (isStream) this.#streams.set(connection, streams + 1);
    response.once("close", () => {
      this.#calls--;
      if (isStream) this.#streams.set(connection, (this.#streams.get(connection) ?? 1) - 1);
    });
    return true;
  }
}

function connectionOf(request: HttpRequest): object {
  return ("stream" in request ? request.stream.session : undefined) ?? request.socket;
}
