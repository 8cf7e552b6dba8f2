import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { AnswerReader } from "../dialect.ts";
import { UpstreamFailure } from "../runner/failure.ts";
import type { Progress } from "../runner/progress.ts";
import { EventStream } from "./event-stream.ts";
import type { Answer } from "./response.ts";
import { ANSWER_LIMITS } from "./response-limits.ts";
import { failureOfStatus } from "./upstream-error.ts";

type Body =
  | { readonly kind: "events"; readonly stream: EventStream }
  | { readonly kind: "whole" | "error"; readonly chunks: Buffer[] };

/** Undici's error codes for a timeout. */
const TIMEOUTS = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);

/**
 * One request and its response, from undici's callbacks directly into the answer: a stream and a promise per
 * chunk would cost more than the rest of the work.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #answer: Answer;
  readonly #reader: AnswerReader;
  readonly #progress: Progress;
  readonly #wireBytesMax: number;
  #controller: Dispatcher.DispatchController | undefined;
  #body: Body | undefined;
  #status = 0;
  #retryAfter: string | undefined;
  #bytes = 0;
  #paused = false;
  #ended = false;
  #given = false;
  #lingers = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(answer: Answer, reader: AnswerReader, progress: Progress, wireBytesMax: number) {
    this.#answer = answer;
    this.#reader = reader;
    this.#progress = progress;
    this.#wireBytesMax = wireBytesMax;
  }

  /** Called right before the request is written to a connection. The reader may have stopped by then. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#given) this.#destroy();
    else this.#progress.isAsked = true;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    if (status !== 200) {
      // A caller that disconnects while the error body is read is not charged.
      this.#progress.isAsked = false;
      this.#retryAfter = headers["retry-after"];
      this.#body = { kind: "error", chunks: [] };
      // The error body is only for the log, so its timeout is short.
      this.#timer = setTimeout(() => this.#giveUp(this.#statusFailure()), ANSWER_LIMITS.errorBodyMs);
      return;
    }
    const encoding = headers["content-encoding"] ?? "identity";
    const type = headers["content-type"] ?? "";
    if (encoding !== "identity") this.#giveUp(garbled("the answer is compressed although it must not be"));
    else if (/^text\/event-stream\b/i.test(type)) this.#body = { kind: "events", stream: this.#events() };
    else if (/^application\/json\b/i.test(type)) this.#body = { kind: "whole", chunks: [] };
    else this.#giveUp(garbled("the answer has no content type that can be read"));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#answer.isOver || !this.#body) return;
    try {
      this.#read(this.#body, chunk);
    } catch (error) {
      this.#giveUp(error);
      return;
    }
    if (!this.#answer.isOver && this.#bytes > this.#wireBytesMax) {
      this.#giveUp(garbled("the answer has too many bytes"));
      return;
    }
    if (this.#answer.wasCut) this.#destroy();
    if (this.#answer.unreadChars > ANSWER_LIMITS.unreadChars) {
      this.#paused = true;
      controller.pause();
    }
    this.#answer.wake();
  }

  onResponseEnd(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    try {
      if (this.#body?.kind === "error") throw this.#statusFailure();
      if (this.#body?.kind === "whole" && !this.#answer.isOver) {
        this.#reader.readWhole(Buffer.concat(this.#body.chunks).toString("utf8"));
      }
      // Created only when needed: an error object costs more than the rest of this function.
      if (!this.#answer.isOver) this.#answer.end(dropped("the answer ended before the reply did"));
    } catch (error) {
      this.#answer.fail(error);
    }
    this.#answer.wake();
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    const failure = this.#body?.kind === "error" ? this.#statusFailure() : this.#failureOf(error);
    this.#answer.end(failure);
    this.#answer.wake();
  }

  /** Called when the reader has taken the buffered text. */
  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#controller?.resume();
  }

  /**
   * Called when the reader stops. After a complete reply the end of the response is about to arrive, so the
   * connection is kept for the next call; otherwise the request is aborted.
   */
  release(): void {
    if (this.#ended || this.#given || this.#lingers) return;
    if (this.#answer.isComplete && !this.#answer.wasCut) {
      this.resume();
      this.#lingers = true;
      this.#timer = setTimeout(() => this.#destroy(), ANSWER_LIMITS.lingerMs);
      this.#timer.unref();
    } else {
      this.#destroy();
    }
  }

  #events(): EventStream {
    return new EventStream(ANSWER_LIMITS.eventChars, (data) => {
      if (!this.#answer.isOver) this.#reader.readEvent(data);
    });
  }

  #read(body: Body, chunk: Buffer): void {
    if (body.kind === "events") {
      if (!body.stream.push(chunk)) throw garbled("an event of the answer is too large");
      return;
    }
    body.chunks.push(chunk);
    if (body.kind === "error" && this.#bytes > ANSWER_LIMITS.errorBodyBytes) throw this.#statusFailure();
    if (body.kind === "whole" && this.#bytes > ANSWER_LIMITS.jsonBytes) {
      throw garbled("the answer has too many bytes for one that is not streamed");
    }
  }

  #statusFailure(): UpstreamFailure {
    const chunks = this.#body?.kind === "error" ? this.#body.chunks : [];
    const text = Buffer.concat(chunks).toString(
      "utf8",
      0,
      Math.min(this.#bytes, ANSWER_LIMITS.errorBodyBytes),
    );
    return failureOfStatus(this.#status, text, this.#retryAfter);
  }

  #failureOf(error: Error): UpstreamFailure {
    const { code = error.name } = error as NodeJS.ErrnoException;
    if (TIMEOUTS.has(code))
      return new UpstreamFailure("timeout", `the upstream was silent for too long: ${code}`);
    return this.#controller === undefined
      ? new UpstreamFailure("unreachable", `the upstream cannot be reached: ${code}`)
      : dropped(`the connection ended before the answer did: ${code}`);
  }

  #giveUp(failure: unknown): void {
    this.#answer.end(failure as UpstreamFailure);
    this.#answer.wake();
    this.#destroy();
  }

  #destroy(): void {
    this.#given = true;
    clearTimeout(this.#timer);
    if (!this.#ended) this.#controller?.abort(new Error("the answer is not wanted any more"));
  }
}

function garbled(message: string): UpstreamFailure {
  return new UpstreamFailure("garbled", message);
}

function dropped(message: string): UpstreamFailure {
  return new UpstreamFailure("dropped", message);
}
