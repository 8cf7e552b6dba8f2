import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { gunzipSync, gzipSync } from "node:zlib";
import {
  create,
  createRegistry,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import {
  type ConnectTransportOptions,
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import * as details from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { httpBindings } from "../../src/server/rest/http-rule.ts";
import { onAbort } from "../support/on-abort.ts";
import { started } from "../support/started.ts";

/** What a client sees of a call, in the same form for every protocol. Messages and details are in proto3 JSON. */
export type Answer = {
  readonly messages: readonly JsonValue[];
  readonly error?: { readonly code: string; readonly text: string; readonly details: readonly JsonObject[] };
  /** Those of the response and of the trailers. */
  readonly headers: Readonly<Record<string, string>>;
};

export type Call = {
  readonly method: DescMethod;
  readonly request?: Readonly<Record<string, unknown>>;
  readonly headers?: Record<string, string>;
  /** Aborting it disconnects the caller. */
  readonly signal?: AbortSignal;
  readonly onMessage?: (message: JsonValue) => unknown;
};

export type Client = { call(call: Call): Promise<Answer>; close(): void };

export type Wire = { readonly name: string; open(url: string): Client };

const GZIP = { sendCompression: compressionGzip, acceptCompression: [compressionGzip], compressMinBytes: 0 };
type Options = Pick<ConnectTransportOptions, "useBinaryFormat" | "sendCompression" | "acceptCompression" | "compressMinBytes">;
const JSON_FORMAT: Options = { useBinaryFormat: false };

/** Every protocol and encoding of RPCs: those that both ports serve. */
export const rpcWires: readonly Wire[] = [
  { name: "gRPC by grpc-js", open: (url) => openGrpcJs(url, {}) },
  { name: "gRPC by grpc-js with gzip", open: (url) => openGrpcJs(url, { "grpc.default_compression_algorithm": 2 }) },
  connect("gRPC", (baseUrl) => createGrpcTransport({ baseUrl })),
  connect("gRPC with JSON", (baseUrl) => createGrpcTransport({ baseUrl, ...JSON_FORMAT })),
  connect("gRPC with gzip", (baseUrl) => createGrpcTransport({ baseUrl, ...GZIP })),
  ...(["1.1", "2"] as const).flatMap((httpVersion) => {
    const web = (options: Options) => (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion, ...options });
    const own = (options: Options) => (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion, ...options });
    return [
      connect(`gRPC-Web over HTTP/${httpVersion}`, web({})),
      connect(`gRPC-Web with JSON over HTTP/${httpVersion}`, web(JSON_FORMAT)),
      connect(`gRPC-Web with gzip over HTTP/${httpVersion}`, web(GZIP)),
      connect(`Connect over HTTP/${httpVersion}`, own({})),
      connect(`Connect with JSON over HTTP/${httpVersion}`, own(JSON_FORMAT)),
      connect(`Connect with gzip over HTTP/${httpVersion}`, own(GZIP)),
      connect(`Connect with JSON and gzip over HTTP/${httpVersion}`, own({ ...JSON_FORMAT, ...GZIP })),
    ];
  }),
];

/** REST, which only the public port serves. */
const restWires: readonly Wire[] = [
  { name: "REST over HTTP/1.1", open: (url) => openRest(url, openHttp1, false) },
  { name: "REST with gzip over HTTP/1.1", open: (url) => openRest(url, openHttp1, true) },
  { name: "REST over HTTP/2", open: (url) => openRest(url, openHttp2, false) },
];

export const wires: readonly Wire[] = [...rpcWires, ...restWires];

/** One wire of each protocol. The others encode the same answer in another way. */
const QUICK = ["gRPC", "gRPC-Web over HTTP/1.1", "Connect over HTTP/2", "REST over HTTP/1.1"];
export const quickWires = wires.filter(({ name }) => QUICK.includes(name));

const registry = createRegistry(
  details.ErrorInfoSchema,
  details.BadRequestSchema,
  details.RetryInfoSchema,
  details.QuotaFailureSchema,
  details.PreconditionFailureSchema,
);
const SCHEMAS = [...registry].filter((desc) => desc.kind === "message");

export function jsonOf(desc: DescMessage, message: Message): JsonObject {
  return toJson(desc, message, { registry, alwaysEmitImplicit: true, useProtoFieldName: true } as object) as JsonObject;
}

function detailOf(desc: DescMessage, message: Message): JsonObject {
  return { "@type": desc.typeName, ...jsonOf(desc, message) };
}

function connect(name: string, transportOf: (baseUrl: string) => Transport): Wire {
  return { name, open: (url) => openConnect(transportOf(url)) };
}

function openConnect(transport: Transport): Client {
  return {
    async call({ method, request: input = {}, headers = {}, signal, onMessage }) {
      const messages: JsonValue[] = [];
      let answered = {};
      const add = (message: Message) => {
        messages.push(jsonOf(method.output, message));
        onMessage?.(messages.at(-1) as JsonValue);
      };
      try {
        if (method.methodKind === "unary") {
          const unary = method as DescMethodUnary;
          const response = await transport.unary(unary, signal, undefined, headers, input);
          answered = Object.fromEntries([...response.header, ...response.trailer]);
          add(response.message);
        } else {
          const streaming = method as DescMethodServerStreaming;
          const only = (async function* () {
            yield input;
          })();
          const response = await transport.stream(streaming, signal, undefined, headers, only);
          answered = Object.fromEntries(response.header);
          for await (const message of response.message) add(message);
          answered = { ...answered, ...Object.fromEntries(response.trailer) };
        }
        return { messages, headers: answered };
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        return {
          messages,
          headers: { ...answered, ...Object.fromEntries(error.metadata) },
          error: {
            code: codeOf(Code[error.code]),
            text: error.rawMessage,
            details: SCHEMAS.flatMap((desc) => error.findDetails(desc).map((one) => detailOf(desc, one))),
          },
        };
      }
    },
    close: () => undefined,
  };
}

function openGrpcJs(url: string, options: object): Client {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure(), options);
  return {
    async call({ method, request = {}, headers = {}, signal, onMessage }) {
      const metadata = new grpc.Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.add(name, value);
      const messages: JsonValue[] = [];
      let answered: Record<string, string> = {};
      // Unary calls and streams are the same in gRPC.
      const call = client.makeServerStreamRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: Readonly<Record<string, unknown>>) => Buffer.from(toBinary(method.input, create(method.input, message))),
        (bytes) => fromBinary(method.output, bytes),
        request,
        metadata,
      );
      call.on("metadata", (received: grpc.Metadata) => {
        answered = mapOf(received);
      });
      onAbort(signal, () => call.cancel());
      try {
        for await (const message of call) {
          messages.push(jsonOf(method.output, message as Message));
          onMessage?.(messages.at(-1) as JsonValue);
        }
        return { messages, headers: answered };
      } catch (thrown) {
        const error = thrown as grpc.ServiceError;
        const [bytes] = error.metadata.get("grpc-status-details-bin");
        const any = bytes === undefined ? [] : fromBinary(StatusSchema, bytes as Buffer).details;
        const found = any.flatMap((one) => anyUnpack(one, registry) ?? []);
        return {
          messages,
          headers: { ...answered, ...mapOf(error.metadata) },
          error: {
            code: codeOf(grpc.status[error.code]),
            text: error.details,
            details: SCHEMAS.flatMap((desc) =>
              found.filter(({ $typeName }) => $typeName === desc.typeName).map((one) => detailOf(desc, one)),
            ),
          },
        };
      }
    },
    close: () => client.close(),
  };
}

function mapOf(metadata: grpc.Metadata): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata.getMap()).map(([name, value]) => [name, String(value)]));
}

function codeOf(name = ""): string {
  return name
    .replace(/(?<=[a-z])([A-Z])/g, "_$1")
    .toUpperCase()
    .replace("CANCELLED", "CANCELED");
}

const ENCODED = { "content-encoding": "gzip" };

type HttpRequest = {
  readonly verb: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal | undefined;
};

/** A response whose body is still to be read. */
type Opened = { status: number; headers: Record<string, string>; chunks: AsyncIterable<Buffer> };

function openHttp1(url: string, { verb, path, headers, body, signal }: HttpRequest): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const call = httpRequest(new URL(path, url), { method: verb, headers, agent: false });
    call.on("response", (response: IncomingMessage) => {
      const { statusCode: status = 0, headers: answered } = response;
      resolve({ status, headers: answered as Record<string, string>, chunks: response });
    });
    call.on("error", reject);
    onAbort(signal, () => call.destroy(new Error("left")));
    call.end(body);
  });
}

function openHttp2(url: string, { verb, path, headers, body, signal }: HttpRequest): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(url);
    const stream = session.request({ ":method": verb, ":path": path, ...headers }, { endStream: !body });
    session.on("error", reject);
    stream.on("error", reject);
    stream.on("close", () => session.close());
    stream.on("response", ({ ":status": status, ...answered }) => {
      resolve({ status: Number(status), headers: answered as Record<string, string>, chunks: stream });
    });
    onAbort(signal, () => stream.destroy(new Error("left")));
    if (body) stream.end(body);
  });
}

/** Sends methods without variables in their path; streams are server-sent events. */
function openRest(url: string, open: typeof openHttp1, isCompressed: boolean): Client {
  return {
    async call({ method, request = {}, headers = {}, signal, onMessage }) {
      const [binding] = httpBindings(method);
      if (!binding) throw new Error(`${method.name} has no address`);
      const isStream = method.methodKind === "server_streaming";
      const message = create(method.input, request);
      const json = toJson(method.input, message, { useProtoFieldName: true }) as JsonObject;
      const text = Buffer.from(JSON.stringify({ ...json, ...(isStream && { stream: true }) }));
      const body = isCompressed ? gzipSync(text) : text;
      const { verb, path } = binding;
      const ofBody = verb === "GET" ? {} : { "content-type": "application/json", ...(isCompressed && ENCODED) };
      const sent = { ...headers, ...ofBody, ...(isCompressed && { "accept-encoding": "gzip" }) };
      const opened = await open(url, { verb, path, headers: sent, body: verb === "GET" ? undefined : body, signal });
      const { status, headers: answered, chunks } = opened;
      const messages: JsonValue[] = [];
      const add = (value: JsonValue) => {
        messages.push(jsonOf(method.output, fromJson(method.output, value)));
        onMessage?.(messages.at(-1) as JsonValue);
      };
      if (answered["content-type"] === "text/event-stream")
        return { messages, headers: answered, ...(await readEvents(chunks, add)) };
      const whole = await bytesOf(chunks);
      const plain = answered["content-encoding"] === "gzip" ? gunzipSync(whole) : whole;
      const answer = JSON.parse(plain.toString()) as JsonValue;
      if (status !== 200) return { messages, headers: answered, error: restError(answer) };
      add(answer);
      return { messages, headers: answered };
    },
    close: () => undefined,
  };
}

async function bytesOf(chunks: Opened["chunks"]): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

async function readEvents(chunks: Opened["chunks"], add: (value: JsonValue) => void): Promise<Pick<Answer, "error">> {
  let text = "";
  for await (const chunk of chunks) {
    text += chunk.toString();
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return {};
      const json = JSON.parse(data) as JsonObject;
      if (json.error) return { error: restError(json) };
      add(json);
    }
  }
  return { error: { code: "", text: "the stream ended without [DONE]", details: [] } };
}

function restError(answer: JsonValue): NonNullable<Answer["error"]> {
  const { error } = answer as { error: { status: string; message: string; details: JsonObject[] } };
  return {
    code: error.status,
    text: error.message,
    details: SCHEMAS.flatMap((desc) =>
      error.details
        .filter((one) => one["@type"] === `type.googleapis.com/${desc.typeName}`)
        .map(({ "@type": _, ...fields }) => detailOf(desc, fromJson(desc, fields))),
    ),
  };
}

/** The headers of an answer that belong to no protocol. */
export function commonHeaders({ headers }: Answer): Record<string, string> {
  const others = /^(connection|keep-alive|date|transfer-encoding|vary|content-|grpc-|connect-|x-accel-)/;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !others.test(name)));
}

/** A client of each wire while the tests run. */
export type Clients = { readonly wires: readonly Wire[]; of(name: string): Client };

export function useClients(over: readonly Wire[], url: () => string): Clients {
  return started(() => {
    const clients = new Map(over.map(({ name, open }) => [name, open(url())]));
    return {
      wires: over,
      of: (name) => clients.get(name) as Client,
      close: () => {
        for (const client of clients.values()) client.close();
      },
    };
  });
}

/** Makes the same call with each client, one after the other, and returns the answers by the names of the wires. */
export async function callEach(clients: Clients, callOf: () => Call, over = clients.wires): Promise<Record<string, Answer>> {
  const answers: Record<string, Answer> = {};
  for (const { name } of over) answers[name] = await clients.of(name).call(callOf());
  return answers;
}

/** Every wire with this value. */
export function allOf<Value>(over: readonly Wire[], value: Value): Record<string, Value> {
  return Object.fromEntries(over.map(({ name }) => [name, value]));
}
