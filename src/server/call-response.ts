import { Code, ConnectError } from "@connectrpc/connect";
import type { DomainError } from "../domain/errors.ts";
import { isClosed } from "./http/message.ts";
import type { CallTransport } from "./service-call.ts";

/** What a response is written to: a response of node:http or node:http2, or a stream of HTTP/2. */
export type Channel = {
  readonly writableEnded: boolean;
  /** Only on a stream, where `writableEnded` is also true after a reset. */
  readonly aborted?: boolean;
  once(event: "close" | "drain", listener: () => void): unknown;
  off(event: "close" | "drain", listener: () => void): unknown;
};

/**
 * The response to a call that is served without Connect, and the signal that aborts the call. Most calls never need
 * the signal, so its AbortController and the timer of its deadline are created on demand.
 */
export abstract class CallResponse implements CallTransport {
  readonly #channel: Channel;
  /** By performance.now(). */
  readonly #deadlineMs: number | undefined;
  #aborted: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Why the server aborted the call. */
  #abortReason: DomainError | undefined;
  #isAbortSent = false;

  constructor(channel: Channel, deadlineMs: number | undefined) {
    this.#channel = channel;
    this.#deadlineMs = deadlineMs;
  }

  abstract setHeader(name: string, value: string): void;
  abstract sendError(error: DomainError): void;

  get signal(): AbortSignal {
    this.#aborted ??= this.#createController();
    return this.#aborted.signal;
  }

  remainingMs(): number | undefined {
    return this.#deadlineMs === undefined ? undefined : this.#deadlineMs - performance.now();
  }

  /** If the signal was requested, its user ends the call; otherwise the error is sent here. */
  abort(reason: DomainError): void {
    this.#abortReason = reason;
    if (this.#aborted) {
      this.#aborted.abort(reason);
      return;
    }
    this.#isAbortSent = true;
    this.sendError(reason);
  }

  /** The error that abort() sent in place of the response. */
  get abortError(): DomainError | undefined {
    return this.#isAbortSent ? this.#abortReason : undefined;
  }

  /** Call this when the service has returned. */
  stopDeadline(): void {
    if (this.#timer) clearTimeout(this.#timer);
  }

  #createController(): AbortController {
    const aborted = new AbortController();
    if (this.#abortReason !== undefined) aborted.abort(this.#abortReason);
    const onClose = () => {
      const { aborted: isCut, writableEnded } = this.#channel;
      // Over HTTP/2 "writableFinished" is also true for an incomplete response.
      if (isCut ?? !writableEnded) aborted.abort(new ConnectError("the caller disconnected", Code.Canceled));
    };
    if (isClosed(this.#channel)) onClose();
    else this.#channel.once("close", onClose);
    this.#startDeadline(aborted);
    return aborted;
  }

  #startDeadline(aborted: AbortController): void {
    const remainingMs = this.remainingMs();
    if (remainingMs === undefined) return;
    const onDeadline = () =>
      aborted.abort(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    if (remainingMs <= 0) onDeadline();
    else this.#timer = setTimeout(onDeadline, remainingMs);
  }
}
