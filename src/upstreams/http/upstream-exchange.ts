import type { IncomingHttpHeaders } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import type { Dispatcher } from "undici";
import type { Prompt } from "../../domain/prompt.ts";
import type { Dialect, ResponseReader } from "../dialect.ts";
import type { Progress } from "../upstream.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import { failureOfStatus } from "./json-value.ts";
import { type FirstTokens, ReplyBuffer } from "./reply-buffer.ts";
import { maxStreamBytes, RESPONSE_LIMITS } from "./response-limits.ts";

/** Undici's error codes for a timeout. */
const TIMEOUTS = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);

/**
 * One request and its response, from undici's callbacks directly into the reply buffer: see
 * docs/decisions/0011-upstream-streams.md. A slow reader does not pause the response, because undici ends the
 * process with an assertion if a paused connection ends that is not kept alive. The reply buffer limits the
 * unread text.
 */
export class UpstreamExchange implements Dispatcher.DispatchHandler {
  readonly reply: ReplyBuffer;
  readonly #reader: ResponseReader;
  readonly #progress: Progress;
  readonly #maxTokens: number;
  readonly #maxJsonBytes: number;
  readonly #timeoutMs: number;
  #state: ExchangeState = QUEUED;
  #controller: Dispatcher.DispatchController | undefined;
  #receivedBytes = 0;

  constructor(dialect: Dialect, prompt: Prompt, progress: Progress, timeoutMs: number, firstTokens?: FirstTokens) {
    const { maxTokens } = prompt;
    this.reply = new ReplyBuffer(maxTokens, firstTokens);
    this.#reader = dialect.createReader(this.reply, prompt);
    this.#maxJsonBytes = dialect.maxJsonBytes ?? Math.min(maxStreamBytes(maxTokens), RESPONSE_LIMITS.jsonBytes);
    this.#progress = progress;
    this.#maxTokens = maxTokens;
    this.#timeoutMs = timeoutMs;
  }

  /** Called right before the request is written to a connection. The reader may have stopped by then. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#state === CLOSED) {
      abortRequest(controller);
      return;
    }
    this.#change(SENT);
    this.#progress.wasSent = true;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#state === CLOSED) return;
    if (status < 200) this.#limitWait();
    else if (status === 200) this.#startReply(headers);
    else this.#startRefusal(status, headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    try {
      this.#readChunk(this.#state, chunk);
    } catch (error) {
      this.#fail(error);
    }
    this.reply.wakeReader();
  }

  onResponseEnd(): void {
    const state = this.#state;
    if (state === CLOSED) return;
    this.#change(CLOSED);
    try {
      if (state.kind === "refused") throw refusalOf(state);
      if (state.kind === "collecting") this.#reader.readWhole(Buffer.concat(state.chunks).toString("utf8"));
    } catch (error) {
      this.reply.fail(error);
    }
    // Created only when needed: an error object costs more than the rest of this function.
    if (this.#isReading()) this.reply.fail(dropped("the response ended before the reply was complete"));
    this.reply.wakeReader();
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: Error): void {
    const state = this.#state;
    if (state === CLOSED) return;
    this.#change(CLOSED);
    this.reply.fail(state.kind === "refused" ? refusalOf(state) : failureOf(error, state === QUEUED));
    this.reply.wakeReader();
  }

  /** Called when the reader stops. Aborts the request, unless its reply is complete. */
  release(): void {
    const { kind } = this.#state;
    if (kind !== "closed" && kind !== "draining") this.#abort();
  }

  /** Called when the reply is complete. The end of the response is about to arrive, which frees the connection. */
  #drain(): void {
    const timer = setTimeout(() => this.#abort(), RESPONSE_LIMITS.drainMs);
    timer.unref();
    this.#change({ kind: "draining", timer, maxBytes: this.#receivedBytes + RESPONSE_LIMITS.drainBytes });
  }

  /** Each interim response restarts undici's timeout, so the first one starts a timer that the others do not restart. */
  #limitWait(): void {
    if (this.#state !== SENT) return;
    const timer = setTimeout(() => {
      this.#fail(new UpstreamFailure("timeout", "the upstream sent only interim responses within its timeout"));
      this.reply.wakeReader();
    }, this.#timeoutMs);
    this.#change({ kind: "sent", timer });
  }

  #startReply(headers: IncomingHttpHeaders): void {
    const encoding = headers["content-encoding"] ?? "identity";
    const type = headers["content-type"] ?? "";
    if (encoding !== "identity") {
      this.#fail(garbled("the response is compressed, although the request does not allow that"));
    } else if (/^text\/event-stream\b/i.test(type)) {
      const events = new EventStream(RESPONSE_LIMITS.eventChars, (data) => {
        if (this.#isReading()) this.#reader.readEvent(data);
      });
      this.#change({ kind: "streaming", events, maxBytes: maxStreamBytes(this.#maxTokens) });
    } else if (/^application\/json\b/i.test(type)) {
      this.#change({ kind: "collecting", chunks: [], maxBytes: this.#maxJsonBytes });
    } else {
      this.#fail(garbled("the response is neither an event stream nor JSON"));
    }
    this.reply.wakeReader();
  }

  #startRefusal(status: number, headers: IncomingHttpHeaders): void {
    // A caller that disconnects while the error body is read is not charged.
    this.#progress.wasSent = false;
    // The error body is only for the log, so its timeout is short.
    const timer = setTimeout(() => {
      this.#fail(refusalOf(refused));
      this.reply.wakeReader();
    }, RESPONSE_LIMITS.errorBodyMs);
    const refused: Refused = {
      kind: "refused",
      status,
      retryAfter: headers["retry-after"],
      chunks: [],
      timer,
    };
    this.#change(refused);
  }

  #readChunk(state: ExchangeState, chunk: Buffer): void {
    switch (state.kind) {
      case "streaming":
      case "cut":
        if (this.#isReading()) this.#readEvents(state, chunk);
        return;
      case "collecting":
        state.chunks.push(chunk);
        this.#checkSize(state.maxBytes);
        return;
      case "refused":
        state.chunks.push(chunk);
        if (this.#receivedBytes > RESPONSE_LIMITS.errorBodyBytes) throw refusalOf(state);
        return;
      case "draining":
        if (this.#receivedBytes > state.maxBytes) this.#abort();
        return;
      case "queued":
      case "sent":
      case "closed":
        return;
      default:
        state satisfies never;
    }
  }

  #readEvents(state: Extract<ExchangeState, { kind: "streaming" | "cut" }>, chunk: Buffer): void {
    const { events, maxBytes } = state;
    if (!events.push(chunk)) throw garbled("an event of the response is too large");
    if (this.#isReading()) this.#checkSize(maxBytes);
    if (this.reply.state === "cut" && state.kind === "streaming") this.#awaitUsage(events, maxBytes);
    // At once: a slow reader must not delay the limits on what follows the reply.
    else if (this.reply.state === "complete") this.#drain();
  }

  /** The usage follows the content that was cut, if the upstream has produced all of it. */
  #awaitUsage(events: EventStream, maxBytes: number): void {
    const timer = setTimeout(() => {
      this.#fail(dropped("the reply continued after its limit"));
      this.reply.wakeReader();
    }, RESPONSE_LIMITS.drainMs);
    timer.unref();
    this.#change({ kind: "cut", events, maxBytes, timer });
  }

  #isReading(): boolean {
    return this.reply.state === "open" || this.reply.state === "cut";
  }

  #checkSize(maxBytes: number): void {
    if (this.#receivedBytes > maxBytes) throw garbled(`the response has more than ${maxBytes} bytes`);
  }

  #fail(error: unknown): void {
    this.reply.fail(error);
    this.#abort();
  }

  #abort(): void {
    this.#change(CLOSED);
    if (this.#controller) abortRequest(this.#controller);
  }

  #change(next: ExchangeState): void {
    const state = this.#state;
    if (!NEXT[state.kind].includes(next.kind)) {
      throw new Error(`an exchange cannot change from ${state.kind} to ${next.kind}`);
    }
    if ("timer" in state) clearTimeout(state.timer);
    this.#state = next;
  }
}

function refusalOf({ status, retryAfter, chunks }: Refused): UpstreamFailure {
  const body = Buffer.concat(chunks).subarray(0, RESPONSE_LIMITS.errorBodyBytes);
  return failureOfStatus(status, body.toString("utf8"), retryAfter);
}

function failureOf(error: Error, isQueued: boolean): UpstreamFailure {
  const { code = error.name } = error as NodeJS.ErrnoException;
  if (isQueued) return new UpstreamFailure("unreachable", `no connection to the upstream: ${code}`);
  return TIMEOUTS.has(code)
    ? new UpstreamFailure("timeout", `the upstream sent nothing within its timeout: ${code}`)
    : dropped(`the connection ended before the response did: ${code}`);
}

function garbled(message: string): UpstreamFailure {
  return new UpstreamFailure("garbled", message);
}

function dropped(message: string): UpstreamFailure {
  return new UpstreamFailure("dropped", message);
}

function abortRequest(controller: Dispatcher.DispatchController): void {
  controller.abort(new Error("the rest of the response is not needed"));
}

/** Collects the body of an error response. */
type Refused = {
  readonly kind: "refused";
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly chunks: Buffer[];
  readonly timer: NodeJS.Timeout;
};

type ExchangeState =
  | { readonly kind: "queued" }
  /** The request is being written, or its response has not begun. */
  | { readonly kind: "sent"; readonly timer?: NodeJS.Timeout }
  /** Reads a reply of server-sent events. */
  | { readonly kind: "streaming"; readonly events: EventStream; readonly maxBytes: number }
  /** Reads only the usage of a reply that was cut at a limit. */
  | {
      readonly kind: "cut";
      readonly events: EventStream;
      readonly maxBytes: number;
      readonly timer: NodeJS.Timeout;
    }
  | { readonly kind: "collecting"; readonly chunks: Buffer[]; readonly maxBytes: number }
  | Refused
  /** The reply is complete. The end of the response frees the connection for the next call. */
  | { readonly kind: "draining"; readonly timer: NodeJS.Timeout; readonly maxBytes: number }
  /** The response has ended, or the request was aborted. Later callbacks have no effect. */
  | { readonly kind: "closed" };

type Kind = ExchangeState["kind"];

const NEXT: Readonly<Record<Kind, readonly Kind[]>> = {
  queued: ["sent", "closed"],
  // Undici sends a request again when its connection closes before it was written.
  sent: ["sent", "streaming", "collecting", "refused", "closed"],
  streaming: ["cut", "draining", "closed"],
  cut: ["draining", "closed"],
  collecting: ["closed"],
  refused: ["closed"],
  draining: ["closed"],
  closed: [],
};

const QUEUED: ExchangeState = { kind: "queued" };
const SENT: ExchangeState = { kind: "sent" };
const CLOSED: ExchangeState = { kind: "closed" };

const BYTE_ORDER_MARK = 0xfeff;

/** Reads server-sent events from chunks that may split lines and characters anywhere. */
export class EventStream {
  readonly #decoder = new StringDecoder("utf8");
  readonly #parser;
  #overflowed = false;
  #begun = false;
  #endedWithCr = false;

  constructor(maxEventChars: number, onEvent: (data: string) => void) {
    this.#parser = createParser({
      onEvent: ({ data }) => onEvent(data),
      onError: ({ type }) => {
        if (type === "max-buffer-size-exceeded") this.#overflowed = true;
      },
      maxBufferSize: maxEventChars,
    });
  }

  /** False once an event exceeds the maximum size. */
  push(chunk: Buffer): boolean {
    let text = this.#decoder.write(chunk);
    if (!this.#begun && text !== "") {
      this.#begun = true;
      if (text.charCodeAt(0) === BYTE_ORDER_MARK) text = text.slice(1);
    }
    if (text !== "" && !this.#overflowed) this.#parser.feed(this.#withLineFeeds(text));
    return !this.#overflowed;
  }

  /** The parser reads a line that ends in CR only with the character after it, which may never arrive. */
  #withLineFeeds(text: string): string {
    const isLfRead = this.#endedWithCr && text.startsWith("\n");
    this.#endedWithCr = text.endsWith("\r");
    const rest = isLfRead ? text.slice(1) : text;
    return rest.includes("\r") ? rest.replaceAll(/\r\n?/g, "\n") : rest;
  }
}
