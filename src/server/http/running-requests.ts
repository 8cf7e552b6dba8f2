import type { BadRequest, BadRequestResponses } from "./bad-request.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, headerBytes, type StreamHandler } from "./message.ts";
import type { ReadingTurns } from "./paced-socket.ts";

export type RequestOptions = {
  readonly handler: HttpHandler;
  /** Serves streams of HTTP/2 before the handler; default: none. */
  readonly serveStream?: StreamHandler;
  readonly refusals: BadRequestResponses;
};

/** Passes the requests of a listener to its handler, and counts those that are running. */
export class RunningRequests {
  readonly #options: RequestOptions;
  readonly #turns: ReadingTurns;
  readonly #maxHeaderBytes: number;
  #count = 0;
  #onLast: (() => void) | undefined;

  constructor(options: RequestOptions, turns: ReadingTurns, maxHeaderBytes: number) {
    this.#options = options;
    this.#turns = turns;
    this.#maxHeaderBytes = maxHeaderBytes;
  }

  get count(): number {
    return this.#count;
  }

  serve(request: HttpRequest, response: HttpResponse, problem: BadRequest | undefined): void {
    this.#add(response);
    // A reset by the peer is not logged: code that waits for the request gets "close".
    request.on("error", ignore);
    response.on("error", ignore);
    if (problem === undefined) this.#options.handler(request, response);
    else this.#options.refusals.answer(problem, request, response);
  }

  rawRefusal(problem: BadRequest, request: HttpRequest | undefined): string {
    return this.#options.refusals.rawResponse(problem, request);
  }

  /** Returns false for a stream that needs request and response objects. */
  readonly serveStream: StreamHandler = (stream, headers, rawHeaders) => {
    const { serveStream } = this.#options;
    if (!serveStream || this.#isTooLarge(rawHeaders)) return false;
    if (!serveStream(stream, headers, rawHeaders)) return false;
    this.#add(stream);
    stream.on("error", ignore);
    return true;
  };

  readonly serveHttp2: HttpHandler = (request, response) => {
    this.serve(request, response, this.#isTooLarge(request.rawHeaders) ? "large_headers" : undefined);
  };

  /** Resolves when no request is running, at the latest at `endMs`. */
  async end(endMs: number): Promise<void> {
    if (this.#count === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onLast = resolve;
    const timer = setTimeout(resolve, Math.max(0, endMs - performance.now()));
    await promise;
    clearTimeout(timer);
  }

  /** The HTTP/1.1 parser enforces this limit; over HTTP/2 Node only announces it. */
  #isTooLarge(rawHeaders: readonly string[]): boolean {
    return headerBytes(rawHeaders) > this.#maxHeaderBytes;
  }

  #add(response: { on(event: "close", listener: () => void): unknown }): void {
    this.#count++;
    this.#turns.count();
    response.on("close", () => {
      this.#count--;
      this.#turns.count();
      if (this.#count === 0) this.#onLast?.();
    });
  }
}

/** Not defined where it is used: it stays on the request, and a closure would keep more in memory. */
const ignore = () => undefined;
