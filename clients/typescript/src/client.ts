import type { DescMessage, Message } from "@bufbuild/protobuf";
import { type CallOptions as ConnectOptions, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { KeyCalls, LedgerCalls, limitsOf, ModelCalls, usagePages } from "./account-calls.ts";
import type { Caller, Input } from "./caller.ts";
import { isBrowser, variable } from "./environment.ts";
import { EventCalls, WebhookCalls } from "./event-calls.ts";
import { VERSION } from "./gen/version.ts";
import { type EmbedRequestSchema, type EmbedResponse, EmbedService } from "./gen/vx/v1/embed_pb.ts";
import {
  type GenerateRequestSchema,
  type GenerateResponse,
  GenerateService,
  type QuoteGenerateResponse,
  type StreamGenerateRequestSchema,
} from "./gen/vx/v1/generate_pb.ts";
import { type GetMeResponse, MeService } from "./gen/vx/v1/me_pb.ts";
import { GenerationStream, type StartedStream } from "./generation-stream.ts";
import { givenIdempotencyKey } from "./idempotency-key.ts";
import { limitedFetch } from "./limited-fetch.ts";
import { addToJson, checkTypes } from "./messages.ts";
import { type CallDefaults, type CallOptions, type Effect, withRetries } from "./retries.ts";
import { abortedWith, endCall } from "./signals.ts";
import { toVxError } from "./to-vx-error.ts";

export type ClientOptions = {
  /** The address of the server. Default: the variable VX_URL, or http://127.0.0.1:8080. */
  readonly url?: string | undefined;
  /** The API key. Default: the variable VX_KEY. */
  readonly key?: string | undefined;
  /** The time limit of each call with its retries, in milliseconds. Default: 10 minutes. 0 for none. */
  readonly timeoutMs?: number | undefined;
  /** How often a call is repeated after an error that a retry can heal. Default: 2. */
  readonly maxRetries?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default: the function of the platform. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * Allows this client in a page. Every visitor of the page can read the key and spend the balance of its account, so
   * use it only where the key belongs to the person who sees the page.
   */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
};

export type GenerateInput = Omit<Input<typeof GenerateRequestSchema>, "stream">;
export type StreamInput = Omit<Input<typeof StreamGenerateRequestSchema>, "stream">;
export type EmbedInput = Input<typeof EmbedRequestSchema>;

const DEFAULT_URL = "http://127.0.0.1:8080";
const DEFAULT_TIMEOUT_MS = 600_000;
const DEFAULT_MAX_RETRIES = 2;

/** A client of one server with one API key. It holds no connection, so it needs no end. */
export class Client implements Caller {
  readonly transport: Transport;
  readonly models: ModelCalls;
  readonly keys: KeyCalls;
  readonly ledger: LedgerCalls;
  readonly events: EventCalls;
  readonly webhooks: WebhookCalls;
  /** The charged usage by period, key, model and end user. */
  readonly usage: ReturnType<typeof usagePages>;
  /** Every limit that applies to the key of this client. */
  readonly limits: ReturnType<typeof limitsOf>;
  readonly #defaults: CallDefaults;

  constructor(options: ClientOptions = {}) {
    if (isBrowser() && options.dangerouslyAllowBrowser !== true) {
      throw new TypeError(
        "This client runs in a browser, where everyone who opens the page can read its API key. Call the server from " +
          "your own server instead. If the key belongs to the person who sees the page, set dangerouslyAllowBrowser.",
      );
    }
    this.transport = createTransport(options, keyOf(options));
    this.#defaults = {
      timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      maxRetries: options.maxRetries ?? DEFAULT_MAX_RETRIES,
    };
    this.models = new ModelCalls(this);
    this.keys = new KeyCalls(this);
    this.ledger = new LedgerCalls(this);
    this.events = new EventCalls(this);
    this.webhooks = new WebhookCalls(this);
    this.usage = usagePages(this);
    this.limits = limitsOf(this);
  }

  /** Generates one reply. It is charged once, whatever the number of retries. */
  generate(input: GenerateInput, options: CallOptions = {}): Promise<GenerateResponse> {
    const { generate } = createClient(GenerateService, this.transport);
    return this.call("keyed", options, (attempt) => generate(input, attempt));
  }

  /**
   * Generates one reply and streams it. Leaving the loop ends the generation, unless the call has an idempotency key.
   * Errors before the first event are retried, later ones are not.
   */
  stream(input: StreamInput, options: CallOptions = {}): GenerationStream {
    const abort = new AbortController();
    const signal = options.signal ? abortedWith(options.signal, abort) : abort.signal;
    const { streamGenerate } = createClient(GenerateService, this.transport);
    const idempotencyKey = givenIdempotencyKey(options);
    const effect = idempotencyKey === undefined ? "unkeyed" : "keyed";
    const started = this.call(effect, { ...options, signal }, async (attempt) => {
      const rest = streamGenerate(input, attempt)[Symbol.asyncIterator]();
      const toError = (thrown: unknown) => toVxError(thrown, idempotencyKey);
      const first = await rest.next();
      return { first, rest, toError, abort: () => endCall(abort, rest) } satisfies StartedStream;
    });
    return new GenerationStream(started);
  }

  /** What `generate` would hold for the same input, and the error it would get. Runs and charges nothing. */
  quote(input: GenerateInput, options: CallOptions = {}): Promise<QuoteGenerateResponse> {
    const { quoteGenerate } = createClient(GenerateService, this.transport);
    return this.call("read", options, (attempt) => quoteGenerate(input, attempt));
  }

  /** One vector for each text. */
  embed(input: EmbedInput, options: CallOptions = {}): Promise<EmbedResponse> {
    const { embed } = createClient(EmbedService, this.transport);
    return this.call("keyed", options, (attempt) => embed(input, attempt));
  }

  /** The key of this client, its plan and the balance of its account. */
  me(options: CallOptions = {}): Promise<GetMeResponse> {
    const { getMe } = createClient(MeService, this.transport);
    return this.call("read", options, (attempt) => getMe({}, attempt));
  }

  /** Makes a call of a generated client with the retries, time limits and errors of this one. */
  call<Result>(effect: Effect, options: CallOptions, attempt: (options: ConnectOptions) => Promise<Result>): Promise<Result> {
    return withRetries(effect, options, this.#defaults, attempt);
  }
}

/** Platforms quote the value of a header that they refuse, and errors must not show a key. */
function keyOf(options: ClientOptions): string {
  const key = (options.key ?? variable("VX_KEY"))?.trim();
  if (!key) throw new TypeError("There is no API key: set the option `key` or the variable VX_KEY.");
  if (!/^[!-~]+$/.test(key)) throw new TypeError("The API key has a space, a line end or another character that no key has.");
  return key;
}

function createTransport(options: ClientOptions, key: string): Transport {
  const headers = new Headers(options.headers);
  headers.set("authorization", `Bearer ${key}`);
  if (!isBrowser()) headers.set("user-agent", `vx-typescript/${VERSION}`);
  return createConnectTransport({
    baseUrl: (options.url ?? variable("VX_URL") ?? DEFAULT_URL).replace(/\/+$/, ""),
    useBinaryFormat: true,
    fetch: limitedFetch(options.fetch),
    interceptors: [
      (next) => async (request) => {
        for (const [name, value] of headers) request.header.set(name, value);
        const { input, output } = request.method;
        if (!request.stream) checkTypes(input, request.message);
        const response = await next(request.stream ? { ...request, message: checked(input, request.message) } : request);
        if (!response.stream) addToJson(output, response.message);
        return response.stream ? { ...response, message: withJson(output, response.message) } : response;
      },
    ],
  });
}

async function* checked(desc: DescMessage, messages: AsyncIterable<Message>): AsyncGenerator<Message> {
  for await (const message of messages) {
    checkTypes(desc, message);
    yield message;
  }
}

async function* withJson(desc: DescMessage, messages: AsyncIterable<Message>): AsyncGenerator<Message> {
  for await (const message of messages) {
    addToJson(desc, message);
    yield message;
  }
}
