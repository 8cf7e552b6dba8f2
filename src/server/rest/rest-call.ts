import type { ServerResponse } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import type { StartedGeneration } from "../../billing/caller.ts";
import type { DomainError } from "../../domain/errors.ts";
import type { Policy } from "../../rules/policy.ts";
import type { AdmittedKey } from "../../store/admit.ts";
import { errorHeaders } from "../errors/error-headers.ts";
import { errorBody, errorStatus } from "../errors/rest-error-body.ts";
import type { Call } from "../gate/call.ts";
import { contentLengthOf, type HttpRequest, type HttpResponse, headerValues } from "../http.ts";
import { isGone } from "./gone.ts";

/** A call over REST. For speed it creates no Headers and no URL, and an AbortController only on demand. */
export class RestCall implements Call {
  readonly protocol = "rest";
  readonly requestId: string;
  readonly policy: Policy;
  /** Read in the constructor: a closed connection has no address. */
  readonly remoteAddress: string;
  readonly maxBodyBytes: number;
  rpc: string;
  key: AdmittedKey | undefined = undefined;
  failure: unknown = undefined;
  model: string | undefined = undefined;
  generation: StartedGeneration | undefined = undefined;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  /** Names and values in turn, written at once: cheaper than setting and merging them one by one. */
  readonly #responseHeaders: string[];
  #aborted: AbortController | undefined;
  /** Why the server aborted the call. */
  #cut: DomainError | undefined;

  constructor(
    rpc: string,
    policy: Policy,
    maxBodyBytes: number,
    request: HttpRequest,
    response: HttpResponse,
    requestId: string,
  ) {
    this.rpc = rpc;
    this.policy = policy;
    this.maxBodyBytes = maxBodyBytes;
    this.requestId = requestId;
    this.remoteAddress = request.socket.remoteAddress ?? "";
    this.#request = request;
    this.#response = response;
    this.#responseHeaders = ["x-request-id", requestId];
  }

  get target(): string {
    return this.#request.url ?? "";
  }

  get contentLength(): number | undefined {
    return contentLengthOf(this.#request);
  }

  get signal(): AbortSignal {
    if (!this.#aborted) {
      const aborted = new AbortController();
      this.#aborted = aborted;
      if (this.#cut !== undefined) aborted.abort(this.#cut);
      const leave = () => {
        // Over HTTP/2 "writableFinished" is also true for a response that was cut off.
        if (!this.#response.writableEnded)
          aborted.abort(new ConnectError("the caller went away", Code.Canceled));
      };
      if (isGone(this.#response)) leave();
      else this.#response.once("close", leave);
    }
    return this.#aborted.signal;
  }

  /** REST has no deadlines. */
  remainingMs(): undefined {
    return undefined;
  }

  /** If the signal was requested, its user ends the call; otherwise the error is sent here. */
  abort(reason: DomainError): void {
    this.#cut = reason;
    if (this.#aborted) {
      this.#aborted.abort(reason);
      return;
    }
    this.failure ??= reason;
    this.sendError(reason);
  }

  headers(name: string): readonly string[] {
    return headerValues(this.#request, name);
  }

  setResponseHeader(name: string, value: string): void {
    this.#responseHeaders.push(name, value);
  }

  writeHead(status: number): void {
    // TypeScript cannot call this method on the union: the two response types declare it differently.
    (this.#response as ServerResponse).writeHead(status, this.#responseHeaders);
  }

  /** Sends the whole response, unless one was already sent or the caller has disconnected. */
  sendJson(status: number, body: string | Buffer): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#responseHeaders.push(
      "content-type",
      "application/json",
      "content-length",
      String(Buffer.byteLength(body)),
      "cache-control",
      "no-store",
    );
    this.writeHead(status);
    (this.#response as ServerResponse).end(body);
  }

  sendError(error: DomainError): void {
    for (const [name, value] of errorHeaders(error)) this.setResponseHeader(name, value);
    this.sendJson(errorStatus(error), errorBody(error, this.requestId));
  }

  /** Sends a response without a body, which has no content-length either (RFC 9110). */
  sendNothing(): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#responseHeaders.push("cache-control", "no-store");
    this.writeHead(204);
    this.#response.end();
  }
}
