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

/** A call over REST. Nothing is made that nobody asks for: no Headers, no URL, no AbortController. */
export class RestCall implements Call {
  readonly protocol = "rest";
  readonly requestId: string;
  readonly policy: Policy;
  /** Read at once: a connection that is gone has none. */
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
  /** Why the call was ended before its time. */
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
        // Over HTTP/2 "writableFinished" is true of an answer that was cut off, too.
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

  /** Whoever asked for the signal ends the call in its own way; otherwise nobody could, and the caller is told here. */
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
    // The two kinds of response declare it in ways that TypeScript cannot call through their union.
    (this.#response as ServerResponse).writeHead(status, this.#responseHeaders);
  }

  /** The whole answer; nothing if one was sent already, or nobody is left to read it. */
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

  /** An answer without a body, which has no length either (RFC 9110). */
  sendNothing(): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#responseHeaders.push("cache-control", "no-store");
    this.writeHead(204);
    this.#response.end();
  }
}
