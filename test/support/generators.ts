import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import {
  type GenerateResponse,
  GenerateService,
  type MessageSchema,
  type ResponseFormatSchema,
  type StreamGenerateResponse,
  type ToolSchema,
} from "../../gen/vx/v1/generate_pb.js";
import { openGrpcJs } from "./generators-grpc.ts";
import { openRest } from "./generators-rest.ts";
import { bearer } from "./protocols.ts";
import { started } from "./started.ts";

export type GenerateFields = {
  readonly model: string;
  readonly messages: MessageInitShape<typeof MessageSchema>[];
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly stop?: string[];
  readonly tools?: MessageInitShape<typeof ToolSchema>[];
  readonly toolChoice?: string;
  readonly responseFormat?: MessageInitShape<typeof ResponseFormatSchema>;
  readonly reasoningEffort?: string;
  readonly user?: string;
  readonly maxCostMicros?: bigint;
};

export type GenerateOptions = {
  readonly secret: string;
  readonly headers?: Record<string, string>;
  /** Aborting it disconnects the caller. */
  readonly signal?: AbortSignal;
  /** Not supported over REST. */
  readonly deadlineMs?: number;
};

/** An error as the caller receives it, in the same form for every protocol. */
export class Refused extends Error {
  /** The reason from the table of errors; empty if the client itself raised the error. */
  readonly reason: string;
  /** The gRPC code, in lower case. */
  readonly code: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    reason: string,
    code: string,
    text: string,
    metadata: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(text);
    this.reason = reason;
    this.code = code;
    this.metadata = metadata;
    this.headers = headers;
  }
}

/** A client of the generation API in one protocol. */
export type Generator = {
  generate(request: GenerateFields, options: GenerateOptions): Promise<GenerateResponse>;
  /** Ending the iteration early closes the stream. */
  stream(request: GenerateFields, options: GenerateOptions): AsyncGenerator<StreamGenerateResponse, void>;
  close(): void;
};

export type GeneratorCase = { readonly name: string; readonly hasDeadlines: boolean; open(url: string): Generator };

export const generators: readonly GeneratorCase[] = [
  { name: "gRPC (grpc-js)", hasDeadlines: true, open: openGrpcJs },
  { name: "gRPC", hasDeadlines: true, open: (baseUrl) => openConnect(createGrpcTransport({ baseUrl })) },
  {
    name: "gRPC-Web over HTTP/1.1",
    hasDeadlines: true,
    open: (baseUrl) => openConnect(createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  },
  {
    name: "gRPC-Web over HTTP/2",
    hasDeadlines: true,
    open: (baseUrl) => openConnect(createGrpcWebTransport({ baseUrl, httpVersion: "2" })),
  },
  {
    name: "Connect JSON over HTTP/1.1",
    hasDeadlines: true,
    open: (baseUrl) => openConnect(createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false })),
  },
  {
    name: "Connect binary over HTTP/2",
    hasDeadlines: true,
    open: (baseUrl) => openConnect(createConnectTransport({ baseUrl, httpVersion: "2" })),
  },
  { name: "REST over HTTP/1.1", hasDeadlines: false, open: (url) => openRest(url, "1.1") },
  { name: "REST over HTTP/2", hasDeadlines: false, open: (url) => openRest(url, "2") },
];

/** A client of a quick protocol: for rules that are the same for all, which test/protocols compares. */
export function openGenerator(baseUrl: string): Generator {
  return openConnect(createConnectTransport({ baseUrl, httpVersion: "2" }));
}

export function useGenerator(metered: { readonly app: { readonly url: string } }): Generator {
  return started(() => openGenerator(metered.app.url));
}

function openConnect(transport: Transport): Generator {
  const client = createClient(GenerateService, transport);
  return {
    generate: async (request, options) => {
      try {
        return await client.generate(request, callOptions(options));
      } catch (error) {
        throw refusedOf(error);
      }
    },
    async *stream(request, options) {
      const left = new AbortController();
      const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
      try {
        yield* client.streamGenerate(request, callOptions({ ...options, signal }));
      } catch (error) {
        throw refusedOf(error);
      } finally {
        left.abort();
      }
    },
    close: () => undefined,
  };
}

function callOptions({ secret, headers, signal, deadlineMs }: GenerateOptions) {
  return {
    headers: { ...bearer(secret), ...headers },
    ...(signal ? { signal } : {}),
    ...(deadlineMs === undefined ? {} : { timeoutMs: deadlineMs }),
  };
}

function refusedOf(error: unknown): Refused {
  const failure = ConnectError.from(error);
  const [info] = failure.findDetails(ErrorInfoSchema);
  const code = Code[failure.code].replace(/(?<!^)([A-Z])/g, "_$1").toLowerCase();
  return new Refused(
    info?.reason.toLowerCase() ?? "",
    code,
    failure.rawMessage,
    info?.metadata,
    Object.fromEntries(failure.metadata),
  );
}
