import { createRequire } from "node:module";
import { Webhook } from "standardwebhooks";
import type { Agent, Dispatcher } from "undici";
import { redactKeys } from "../domain/credentials.ts";
import { type DeliveryAddresses, REFUSED_ADDRESS } from "./addresses.ts";

const require = createRequire(import.meta.url);

const TIMEOUT_MS = 15_000;
const MAX_KEEP_ALIVE_MS = 30_000;
const ANSWER_CHARACTERS = 1_000;
const ANSWER_BYTES = 4 * ANSWER_CHARACTERS;
const MAX_ERROR_CHARACTERS = 300;

export type Endpoint = {
  readonly url: string;
  /** Separated by spaces: each makes a signature. */
  readonly secrets: string;
};

export type Outcome = {
  readonly status: number | undefined;
  readonly latencyMs: number;
  /** Empty if the endpoint accepted the delivery. */
  readonly error: string;
  readonly answer: string;
  readonly retryAfterMs: number | undefined;
};

/** Sends deliveries as Standard Webhooks describes them. Redirects are not followed. */
export class Sender {
  readonly addresses: DeliveryAddresses;
  readonly #userAgent: string;
  readonly #now: () => number;
  #agent: Agent | undefined;

  /** @param now the time of the database: endpoints refuse deliveries whose time differs from theirs by minutes */
  constructor(addresses: DeliveryAddresses, userAgent: string, now: () => number) {
    this.addresses = addresses;
    this.#userAgent = userAgent;
    this.#now = now;
  }

  /** Never rejects: a failure is an outcome too. */
  async send({ url, secrets }: Endpoint, id: string, body: string, signal: AbortSignal): Promise<Outcome> {
    const startedAt = performance.now();
    const time = new Date(this.#now());
    const answer = new Answer(signal);
    try {
      const target = new URL(url);
      this.addresses.check(target);
      // Undici is loaded with the first delivery: a server without webhooks starts faster.
      this.#agent ??= this.#createAgent();
      this.#agent.dispatch(
        {
          origin: target.origin,
          path: target.pathname + target.search,
          method: "POST",
          headers: {
            "content-type": "application/json",
            "user-agent": this.#userAgent,
            "webhook-id": id,
            "webhook-timestamp": String(Math.floor(time.getTime() / 1_000)),
            "webhook-signature": secrets
              .split(" ")
              .map((secret) => new Webhook(secret).sign(id, time, body))
              .join(" "),
          },
          body,
        },
        answer,
      );
    } catch (error) {
      answer.onResponseError(undefined, error as Error);
    }
    await answer.ended;
    const { status, text, error, retryAfterMs } = answer;
    return {
      status,
      latencyMs: Math.round(performance.now() - startedAt),
      error,
      answer: text,
      retryAfterMs,
    };
  }

  async close(): Promise<void> {
    await this.#agent?.destroy();
  }

  #createAgent(): Agent {
    const undici = require("undici") as typeof import("undici");
    return new undici.Agent({
      // A connector has one look-up, and an address may receive deliveries on some ports only.
      connect: (target, done) => {
        const lookup = this.addresses.lookup(target);
        undici.buildConnector({ timeout: TIMEOUT_MS, lookup, allowH2: false })(target, done);
      },
      // An endpoint can ask for ten minutes.
      keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
      pipelining: 1,
    });
  }
}

/** The answer to a delivery: its status, and the first characters of its body. The rest is not read. */
class Answer implements Dispatcher.DispatchHandler {
  readonly ended: Promise<void>;
  status: number | undefined;
  error = "";
  retryAfterMs: number | undefined;
  #bytes = Buffer.alloc(0);
  readonly #signal: AbortSignal;
  readonly #end: () => void;
  readonly #onAbort = () => this.#fail((this.#signal.reason as Error).message);
  readonly #timer = setTimeout(() => this.#fail(NO_ANSWER), TIMEOUT_MS);
  #controller: Dispatcher.DispatchController | undefined;
  #isEnded = false;

  constructor(signal: AbortSignal) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = resolve;
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort);
  }

  get text(): string {
    return storable(this.#bytes.toString("utf8"), ANSWER_CHARACTERS);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isEnded) controller.abort(new Error(NO_ANSWER));
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    this.status = status;
    this.retryAfterMs = readRetryAfter(headers["retry-after"]);
    if (status >= 300 && status < 400) this.error = `The endpoint answered ${status}. Redirects are not followed.`;
    else if (status >= 400) this.error = `The endpoint answered ${status}.`;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk.subarray(0, ANSWER_BYTES - this.#bytes.length)]);
    if (this.#bytes.length === ANSWER_BYTES) this.#stop();
  }

  onResponseEnd(): void {
    this.#finish();
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#fail(textOf(error));
  }

  /** A complete status is an answer, also if its body is not complete. */
  #fail(text: string): void {
    if (!this.#isEnded && this.status === undefined) this.error = text;
    this.#stop();
  }

  /** Closes the connection, which a complete answer leaves open for the next delivery. */
  #stop(): void {
    if (this.#isEnded) return;
    this.#finish();
    this.#controller?.abort(new Error("The rest of the answer is not needed."));
  }

  #finish(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#end();
  }
}

const NO_ANSWER = `The endpoint did not answer within ${TIMEOUT_MS / 1_000} s.`;

function textOf(error: Error): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return textOf(error.errors[0]);
  if (error.message === REFUSED_ADDRESS) return REFUSED_ADDRESS;
  return storable(`The connection failed: ${error.message}`, MAX_ERROR_CHARACTERS);
}

/**
 * The first characters of a text from outside, without what PostgreSQL refuses, NUL and half of a pair, and without keys and secrets, which
 * the page of an error can have.
 */
function storable(text: string, maxCharacters: number): string {
  const safe = redactKeys(text.toWellFormed().replaceAll("\0", "\ufffd"));
  return [...safe].slice(0, maxCharacters).join("");
}

function readRetryAfter(header: string | string[] | undefined): number | undefined {
  if (typeof header !== "string") return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return ms > 0 ? ms : undefined;
}
