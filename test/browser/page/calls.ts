// Runs in a page. Each function makes one call from the page and returns what the page could read, as JSON.
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import OpenAI from "openai";
import { Client, VxError } from "../../../clients/typescript/src/index.ts";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { GenerateService } from "../../../gen/vx/v1/generate_pb.js";

export type Target = { readonly url: string; readonly key: string };

/** The headers that every page needs; null if the browser hides a header. */
export type ReadHeaders = Readonly<Record<(typeof READ_HEADERS)[number], string | null>>;

export type CallResult =
  | {
      readonly text: string;
      readonly pieces: number;
      /** Undefined for clients that hide the headers of a success. */
      readonly headers: ReadHeaders | undefined;
    }
  | { readonly code: string; readonly reason: string | undefined; readonly headers: ReadHeaders | undefined };

const READ_HEADERS = [
  "x-request-id",
  "x-ratelimit-remaining-requests",
  "ratelimit",
  "retry-after",
  "www-authenticate",
  "idempotency-replayed",
] as const;

const TRANSPORTS = {
  connect: (baseUrl: string) => createConnectTransport({ baseUrl }),
  "connect-binary": (baseUrl: string) => createConnectTransport({ baseUrl, useBinaryFormat: true }),
  "grpc-web": (baseUrl: string) => createGrpcWebTransport({ baseUrl }),
  "grpc-web-json": (baseUrl: string) => createGrpcWebTransport({ baseUrl, useBinaryFormat: false }),
} satisfies Record<string, (baseUrl: string) => Transport>;

export type GeneratedClient = keyof typeof TRANSPORTS;

function messageOf(model: string) {
  return { model, messages: [{ role: "user" as const, content: "[[tokens=5]]" }] };
}

async function generated(target: Target, name: GeneratedClient, model: string, isStream: boolean): Promise<CallResult> {
  const client = createClient(GenerateService, TRANSPORTS[name](target.url));
  let headers: ReadHeaders | undefined;
  const options = {
    headers: { Authorization: `Bearer ${target.key}` },
    timeoutMs: 30_000,
    onHeader: (received: Headers) => {
      headers = readHeaders(received);
    },
  };
  try {
    if (!isStream) {
      const { message } = await client.generate(messageOf(model), options);
      return { text: message?.content ?? "", pieces: 1, headers };
    }
    const pieces: string[] = [];
    let isDone = false;
    for await (const { event } of client.streamGenerate(messageOf(model), options)) {
      if (event.case === "delta") pieces.push(event.value.content);
      isDone = event.case === "done";
    }
    if (!isDone) throw new Error("the stream has no last event");
    return { text: pieces.join(""), pieces: pieces.length, headers };
  } catch (error) {
    const failure = ConnectError.from(error);
    const [info] = failure.findDetails(ErrorInfoSchema);
    return { code: Code[failure.code], reason: info?.reason, headers: readHeaders(failure.metadata) };
  }
}

async function plainFetch(
  target: Target,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: object,
  credentials: "include" | "same-origin" = "same-origin",
): Promise<CallResult & { readonly status?: number }> {
  try {
    const response = await fetch(new URL(path, target.url), {
      method: body === undefined ? "GET" : "POST",
      credentials,
      headers: {
        ...(target.key === "" ? {} : { authorization: `Bearer ${target.key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, pieces: 1, headers: readHeaders(response.headers) };
  } catch (error) {
    return { code: (error as Error).name, reason: undefined, headers: undefined };
  }
}

async function openAi({ url, key }: Target, model: string, isStream: boolean): Promise<CallResult> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, dangerouslyAllowBrowser: true });
  try {
    if (!isStream) {
      const { choices } = await client.chat.completions.create(messageOf(model));
      return { text: choices[0]?.message.content ?? "", pieces: 1, headers: undefined };
    }
    const pieces: string[] = [];
    for await (const { choices } of await client.chat.completions.create({ ...messageOf(model), stream: true })) {
      const content = choices[0]?.delta.content;
      if (content) pieces.push(content);
    }
    return { text: pieces.join(""), pieces: pieces.length, headers: undefined };
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error;
    const headers = error.headers && readHeaders(error.headers);
    return { code: error.constructor.name, reason: error.code ?? undefined, headers };
  }
}

/** The client of clients/typescript. Without `isAllowed`, it refuses to run in a page. */
async function own({ url, key }: Target, model: string, isStream: boolean, isAllowed: boolean): Promise<CallResult> {
  try {
    const client = new Client({ url, key, dangerouslyAllowBrowser: isAllowed });
    if (!isStream) {
      const { message } = await client.generate(messageOf(model));
      return { text: message?.content ?? "", pieces: 1, headers: undefined };
    }
    const stream = client.stream(messageOf(model));
    let pieces = 0;
    for await (const _ of stream.texts()) pieces++;
    const { message } = await stream.finalResponse();
    return { text: message?.content ?? "", pieces, headers: undefined };
  } catch (error) {
    if (!(error instanceof VxError)) return { code: String(error), reason: undefined, headers: undefined };
    return { code: error.name, reason: error.reason, headers: readHeaders(error.headers) };
  }
}

function readHeaders(headers: Headers): ReadHeaders {
  const read = READ_HEADERS.map((name) => [name, headers.get(name)]);
  return Object.fromEntries(read) as ReadHeaders;
}

const calls = { generated, plainFetch, openAi, own };

export type Calls = typeof calls;

Object.assign(globalThis, { calls });
