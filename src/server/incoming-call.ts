import type { Policy } from "../rules/policy.ts";
import { contentLengthOf, headerValues, type RequestHead, remoteAddressOf } from "./http/message.ts";

export type Protocol = "grpc" | "grpc-web" | "connect" | "rest";

/** A call as it arrived, the same in every protocol. Nothing changes it. */
export type IncomingCall = {
  readonly protocol: Protocol;
  readonly policy: Policy;
  readonly requestId: string;
  readonly remoteAddress: string;
  /** The target of the request line; checked for keys, which must not be there, and never logged. */
  readonly target: string;
  /** The size of the body, if the caller announces it. */
  readonly contentLength: number | undefined;
  readonly maxBodyBytes: number;
  /** Whether the key can also be in the header `x-api-key`. */
  readonly acceptsKeyHeader?: boolean;
  /** All values of a header: code that needs a single value checks for duplicates. */
  headers(name: string): readonly string[];
};

/** What authentication reads of a request that is no call. */
export function credentialsOf(
  request: RequestHead,
): Pick<IncomingCall, "target" | "headers" | "remoteAddress"> {
  return {
    target: request.url ?? "",
    remoteAddress: remoteAddressOf(request),
    headers: (name) => headerValues(request, name),
  };
}

const NONE: readonly string[] = [];

/** A call that arrived as a request of node:http or node:http2, or as a stream. */
export class HttpCall implements IncomingCall {
  readonly protocol: Protocol;
  readonly policy: Policy;
  readonly maxBodyBytes: number;
  readonly requestId: string;
  readonly acceptsKeyHeader: boolean;
  /** Read in the constructor: a closed connection has no address. */
  readonly remoteAddress: string;
  readonly #request: RequestHead;

  constructor(
    protocol: Protocol,
    policy: Policy,
    maxBodyBytes: number,
    request: RequestHead,
    requestId: string,
    acceptsKeyHeader = false,
  ) {
    this.protocol = protocol;
    this.policy = policy;
    this.maxBodyBytes = maxBodyBytes;
    this.requestId = requestId;
    this.acceptsKeyHeader = acceptsKeyHeader;
    this.remoteAddress = remoteAddressOf(request);
    this.#request = request;
  }

  get target(): string {
    return this.#request.url ?? "";
  }

  get contentLength(): number | undefined {
    return contentLengthOf(this.#request);
  }

  headers(name: string): readonly string[] {
    // Absent headers are frequent, and reading all names costs more.
    if (this.#request.headers[name] === undefined) return NONE;
    return headerValues(this.#request, name);
  }
}
