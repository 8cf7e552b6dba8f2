import type { ServerResponse } from "node:http";
import type { DomainError } from "../../domain/errors.ts";
import { CallResponse } from "../call-response.ts";
import { varyWith } from "../cors.ts";
import { setErrorHeaders } from "../errors/error-headers.ts";
import { errorStatus } from "../errors/rest-error-body.ts";
import { type HttpResponse, isClosed } from "../http.ts";
import type { SurfaceForm } from "./surface-form.ts";

/** The response to a REST call. For speed it creates no Headers. REST has no deadlines. */
export class RestResponse extends CallResponse {
  readonly #response: HttpResponse;
  readonly #requestId: string;
  readonly #form: SurfaceForm;
  /** Names and values in turn, written at once: cheaper than setting and merging them one by one. */
  readonly #headers: string[] = [];

  constructor(response: HttpResponse, requestId: string, form: SurfaceForm) {
    super(response, undefined);
    this.#response = response;
    this.#requestId = requestId;
    this.#form = form;
    for (const name of form.requestIdHeaders) this.#headers.push(name, requestId);
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

  /** Sends the headers of a stream. Returns the response, for its pieces; undefined if it was sent or has ended. */
  startStream(contentType: string): ServerResponse | undefined {
    if (this.#response.headersSent || isClosed(this.#response)) return undefined;
    this.#headers.push("content-type", contentType, "cache-control", "no-store", "x-accel-buffering", "no");
    return this.#writeHead(200);
  }

  /** Sends the whole response, unless one was already sent or the caller has disconnected. */
  sendText(status: number, body: string | Buffer, contentType: string): void {
    if (this.#response.headersSent || isClosed(this.#response)) return;
    this.#headers.push(
      "content-type",
      contentType,
      "content-length",
      String(Buffer.byteLength(body)),
      "cache-control",
      "no-store",
    );
    this.#writeHead(status).end(body);
  }

  sendError(error: DomainError): void {
    setErrorHeaders(this, error);
    this.sendText(errorStatus(error), this.#form.errorBody(error, this.#requestId), "application/json");
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
