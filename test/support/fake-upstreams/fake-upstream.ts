import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { RemoteSettings } from "../../../src/domain/model.ts";
import { reply } from "./behaviours.ts";
import { requestProblems } from "./request-schemas.ts";
import { Turn } from "./turn.ts";
import { openaiWire, type Reply, type Wire } from "./wire.ts";

/** A call as the upstream recorded it, independent of the server's records. */
export type FakeCall = {
  readonly model: unknown;
  /** The body as received. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  /** Number of pieces made for the call. A call with at least one piece counts as executed. */
  pieces: number;
  /** "left": the client disconnected before the end. */
  ended: "running" | "finished" | "left";
};

/** How the upstream handles a call. */
export type Behaviour = (turn: Turn) => void | Promise<void>;

export const DEFAULT_REPLY: Reply = {
  pieces: ["Hello", ", ", "world", "."],
  finishReason: "stop",
  usage: { input: 11, output: 4 },
};

/** A strict model server on loopback: it records every call, refuses invalid bodies and follows a script. */
export class FakeUpstream {
  readonly calls: FakeCall[] = [];
  readonly #server: Server;
  readonly #wire: Wire;
  readonly #sockets = new Set<Socket>();
  readonly #script: Behaviour[] = [];
  #usual: Behaviour;
  #connections = 0;
  #watchers: (() => void)[] = [];

  private constructor(wire: Wire, usual: Behaviour) {
    this.#wire = wire;
    this.#usual = usual;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    // Longer than the tests take: the client closes idle connections, not this server.
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on("connection", (socket) => {
      this.#connections++;
      this.#sockets.add(socket);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        this.#changed();
      });
    });
  }

  static async start(options: { wire?: Wire; usual?: Behaviour; port?: number } = {}): Promise<FakeUpstream> {
    const fake = new FakeUpstream(options.wire ?? openaiWire, options.usual ?? reply());
    await new Promise<void>((resolve, reject) => {
      fake.#server.once("error", reject);
      fake.#server.listen(options.port ?? 0, "127.0.0.1", resolve);
    });
    return fake;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  /** The calls that were executed. */
  get executions(): readonly FakeCall[] {
    return this.calls.filter(({ pieces }) => pieces > 0);
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  /** The total number of connections that were accepted. */
  get connections(): number {
    return this.#connections;
  }

  settings(options: Partial<RemoteSettings> = {}): RemoteSettings {
    return {
      kind: this.#wire.kind,
      baseUrl: this.baseUrl,
      apiKeyEnv: undefined,
      model: "fake-model",
      timeoutMs: 30_000,
      ...options,
    };
  }

  /** Behaviours for the next calls, one each. Later calls get the usual behaviour again. */
  next(...behaviours: readonly Behaviour[]): void {
    this.#script.push(...behaviours);
  }

  /** Discards the remaining behaviours of `next`. */
  forgetNext(): void {
    this.#script.length = 0;
  }

  /** Forgets the calls and all behaviours that it was told. */
  reset(): void {
    this.calls.length = 0;
    this.forgetNext();
    this.#usual = reply();
  }

  /** The behaviour of all further calls. */
  always(behaviour: Behaviour): void {
    this.#usual = behaviour;
  }

  /** Waits until the condition holds. It is checked at every change. */
  async until(condition: (fake: FakeUpstream) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  /** Resets all connections, as a crash would. The upstream keeps listening. */
  cutConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Record<string, unknown>;
    const call: FakeCall = { model: body.model, body, headers: request.headers, pieces: 0, ended: "running" };
    this.calls.push(call);
    response.on("close", () => {
      call.ended = response.writableFinished ? "finished" : "left";
      this.#changed();
    });
    this.#changed();
    if (request.url?.split("?")[0] !== this.#wire.path) {
      response.writeHead(404).end();
      return;
    }
    const problems = requestProblems(this.#wire.kind, body);
    if (problems.length > 0) {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { type: "invalid_request_error", message: problems.join("; ") } }));
      return;
    }
    const behaviour = this.#script.shift() ?? this.#usual;
    await behaviour(new Turn(this.#wire, DEFAULT_REPLY, call, response, () => this.#changed()));
  }

  #changed(): void {
    for (const watcher of this.#watchers.splice(0)) watcher();
  }
}
