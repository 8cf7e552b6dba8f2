import type { ServerResponse } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import type { DomainError } from "../../domain/errors.ts";
import { varyWith } from "../cors.ts";
import { setErrorHeaders } from "../errors/error-headers.ts";
import { errorStatus } from "../errors/rest-error-body.ts";
import { type HttpResponse, isClosed } from "../http.ts";
import type { CallTransport } from "../service-call.ts";
import type { SurfaceForm } from "./surface-form.ts";

/**
 * The response to a REST call, and the signal that aborts the call. For speed it creates no Headers, and an
 * AbortController only on demand.
 */
export class RestResponse implements CallTransport {
  readonly #response: HttpResponse;
  readonly #requestId: string;
  readonly #form: SurfaceForm;
  /** Names and values in turn, written at once: cheaper than setting and merging them one by one. */
  readonly #headers: string[];
  #aborted: AbortController | undefined;
  /** Why the server aborted the call. */
  #abortReason: DomainError | undefined;
  #isAbortSent = false;

  constructor(response: HttpResponse, requestId: string, form: SurfaceForm) {
    this.#response = response;
    this.#requestId = requestId;
    this.#form = form;
    this.#headers = form.requestIdHeaders.flatMap((name) => [name, requestId]);
  }

  get signal(): AbortSignal {
    if (!this.#aborted) {
      const aborted = new AbortController();
      this.#aborted = aborted;
      if (this.#abortReason !== undefined) aborted.abort(this.#abortReason);
      const onClose = () => {
        // Over HTTP/2 "writableFinished" is also true for an incomplete response.
        if (!this.#response.writableEnded)
          aborted.abort(new ConnectError("the caller disconnected", Code.Canceled));
      };
      if (isClosed(this.#response)) onClose();
      else this.#response.once("close", onClose);
    }
    return this.#aborted.signal;
  }

  /** REST has no deadlines. */
  remainingMs(): undefined {
    return undefined;
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

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  setHeader(name: string, value: string): void {
    this.#headers.push(name, value);
  }

  /** Declares that the response also depends on this request header. */
  addVary(name: string): void {
    this.#headers.push("vary", varyWith(this.#response, name));
  }

  /** Sends the headers of a stream; returns the response, for its pieces. */
  startStream(contentType: string): ServerResponse {
    this.#headers.push("content-type", contentType, "cache-control", "no-store", "x-accel-buffering", "no");
    return this.#writeHead(200);
  }

  /** Sends the whole response, unless one was already sent or the caller has disconnected. */
  sendJson(status: number, body: string | Buffer): void {
    if (this.#response.headersSent || isClosed(this.#response)) return;
    this.#headers.push(
      "content-type",
      "application/json",
      "content-length",
      String(Buffer.byteLength(body)),
      "cache-control",
      "no-store",
    );
    this.#writeHead(status).end(body);
  }

  sendError(error: DomainError): void {
    setErrorHeaders(this, error);
    this.sendJson(errorStatus(error), this.#form.errorBody(error, this.#requestId));
  }

  /** Sends a response without a body, which has no content-length either (RFC 9110). */
  sendEmpty(): void {
    if (this.#response.headersSent || isClosed(this.#response)) return;
    this.#headers.push("cache-control", "no-store");
    this.#writeHead(204).end();
  }

  #writeHead(status: number): ServerResponse {
    // TypeScript cannot call this method on the union: the two response types declare it differently.
    const writer = this.#response as ServerResponse;
    writer.writeHead(status, this.#headers);
    return writer;
  }
}
