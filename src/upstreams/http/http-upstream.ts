import type { Pool } from "undici";
import type { TraceHeaders } from "../../domain/call-trace.ts";
import type { RemoteSettings } from "../../domain/model.ts";
import { charactersIn, type Prompt } from "../../domain/prompt.ts";
import type { Dialect, Dialects } from "../dialect.ts";
import { Progress, type Upstream, type UpstreamEvent } from "../upstream.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import type { Connections } from "./connection-pool.ts";
import type { FirstTokens } from "./reply-buffer.ts";
import { inTurns, type RequestBody, writeBody } from "./request-body.ts";
import { UpstreamExchange } from "./upstream-exchange.ts";

const COMMON_HEADERS = {
  "content-type": "application/json",
  accept: "text/event-stream, application/json",
  // Compression delays a stream, and a small body may decompress to a huge one.
  "accept-encoding": "identity",
};

export class HttpUpstream implements Upstream {
  readonly name: string;
  readonly #dialects: Dialects;
  readonly #settings: RemoteSettings;
  readonly #readKey: () => string | undefined;
  readonly #connections: Connections;
  readonly #loadFirstTokens: () => Promise<FirstTokens>;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #query: string;
  #apiKey: string | undefined;
  #headers: Record<string, string> = {};
  readonly #pool: Pool;

  constructor(
    dialects: Dialects,
    settings: RemoteSettings,
    readKey: () => string | undefined,
    connections: Connections,
    loadFirstTokens: () => Promise<FirstTokens>,
  ) {
    const base = new URL(settings.baseUrl);
    const basePath = base.pathname.replace(/\/+$/, "");
    this.name = `${settings.kind} ${base.host}${basePath} ${settings.model}`;
    this.#dialects = dialects;
    this.#settings = settings;
    this.#readKey = readKey;
    this.#connections = connections;
    this.#loadFirstTokens = loadFirstTokens;
    this.#origin = base.origin;
    this.#basePath = basePath;
    this.#query = base.search;
    this.prepareKey()();
    this.#pool = connections.open(base.origin);
  }

  prepareKey(): () => void {
    const apiKey = this.#readKey();
    const headers = { ...COMMON_HEADERS, ...this.#dialects.headers(apiKey) };
    return () => {
      this.#apiKey = apiKey;
      this.#headers = headers;
    };
  }

  async *generate(
    prompt: Prompt,
    signal: AbortSignal,
    progress = new Progress(),
    trace?: TraceHeaders,
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    const dialect = this.#dialectFor(prompt);
    const body = await writeBody(dialect.body(prompt, this.#settings.model), charactersIn(prompt));
    const isLimitRaised = prompt.maxTokens < (dialect.minTokens ?? 0);
    const firstTokens = isLimitRaised ? await this.#loadFirstTokens() : undefined;
    signal.throwIfAborted();
    // Another key may be in use when a failure is logged.
    const apiKey = this.#apiKey;
    const exchange = new UpstreamExchange(dialect, prompt, progress, this.#settings.timeoutMs, firstTokens);
    const { reply } = exchange;
    const abort = () => {
      progress.unread = reply.abort(signal.reason);
      progress.report = reply.report;
      exchange.release();
    };
    signal.addEventListener("abort", abort, { once: true });
    try {
      this.#send(dialect.path(this.#basePath) + this.#query, body, trace, exchange);
      for (;;) {
        const event = reply.nextEvent();
        if (event) {
          // The charge is computed before `finally` runs.
          if (event.kind === "done") progress.report = reply.report;
          yield event;
          if (event.kind === "done") return;
        } else {
          await reply.changed();
        }
      }
    } catch (error) {
      throw error instanceof UpstreamFailure ? error.forLog(apiKey) : error;
    } finally {
      progress.report = reply.report;
      signal.removeEventListener("abort", abort);
      exchange.release();
    }
  }

  async close(): Promise<void> {
    await this.#connections.close(this.#origin);
  }

  #dialectFor({ options: { task } }: Prompt): Dialect {
    const dialect = task ? this.#dialects.tasks?.[task.kind] : this.#dialects;
    // Requests for tasks that an upstream cannot do are refused before they get here.
    if (!dialect) throw new UpstreamFailure("rejected", `the upstream has no API for the task "${task?.kind}"`);
    return dialect;
  }

  #send(path: string, { parts, bytes }: RequestBody, trace: TraceHeaders | undefined, exchange: UpstreamExchange): void {
    const { timeoutMs } = this.#settings;
    const length = bytes === undefined ? undefined : { "content-length": String(bytes) };
    this.#pool.dispatch(
      {
        path,
        method: "POST",
        headers: length || trace ? { ...this.#headers, ...length, ...trace } : this.#headers,
        // Undici accepts any iterable of buffers, but its types do not include that.
        body: (typeof parts === "string" ? parts : inTurns(parts)) as string,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      },
      exchange,
    );
  }
}
