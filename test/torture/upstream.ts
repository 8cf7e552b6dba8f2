import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { openaiWire } from "../support/fake-upstreams/wire.ts";

/** The upstream's behaviour for a prompt, encoded in the prompt. */
export type ReplyPlan = {
  readonly pieces: number;
  readonly firstMs: number;
  readonly gapMs: number;
  /**
   * "refuse": 500 before any piece. "flaky": 500 on the first attempt only. "break": the connection ends in
   * the middle. "mute": no usage is reported. "boast": the reported usage exceeds the maximum of the hold.
   */
  readonly mode: "fine" | "refuse" | "flaky" | "break" | "mute" | "boast";
  readonly inputTokens: number;
  readonly outputTokens: number;
};

/** One execution, as the upstream recorded it. */
export type Execution = {
  readonly op: number;
  readonly at: number;
  /** Number of pieces made; at least one means that output was produced. */
  pieces: number;
  ended: "running" | "whole" | "left" | "refused" | "broke";
};

const BOAST_TOKENS = 1_000_000;

export function promptOf(op: number, plan: ReplyPlan): string {
  return `#${String(op).padStart(8, "0")} ${JSON.stringify(plan)}`;
}

export function pieceOf(op: number, i: number): string {
  return ` piece${i}of${op}`;
}

/** A model server that behaves as the prompts say and keeps its own log. */
export class TortureUpstream {
  readonly executions: Execution[] = [];
  /** Everything received, which is searched for values that must never arrive. */
  readonly #heard = new Set<string>();
  readonly #tries = new Map<number, number>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #onWhole: (() => void)[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      response.on("error", () => undefined);
      request.on("error", () => undefined);
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(): Promise<TortureUpstream> {
    const upstream = new TortureUpstream();
    await new Promise<void>((resolve, reject) => {
      upstream.#server.once("error", reject);
      upstream.#server.listen(0, "127.0.0.1", resolve);
    });
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get heardText(): string {
    return [...this.#heard].join("\n");
  }

  /** Resolves when this many more executions have completed. */
  async untilWhole(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await new Promise<void>((resolve) => this.#onWhole.push(resolve));
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    this.#heard.add(JSON.stringify(request.headers));
    const body = JSON.parse(text) as { messages: { content: string }[] };
    const found = /^#(\d+) (\{.*\})/.exec(body.messages.at(-1)?.content ?? "");
    if (!found) {
      response.writeHead(400).end("{}");
      return;
    }
    const op = Number(found[1]);
    const plan = JSON.parse(found[2] ?? "") as ReplyPlan;
    const tries = (this.#tries.get(op) ?? 0) + 1;
    this.#tries.set(op, tries);
    const execution: Execution = { op, at: performance.now(), pieces: 0, ended: "running" };
    this.executions.push(execution);
    response.once("close", () => {
      if (execution.ended === "running") execution.ended = "left";
    });
    if (plan.mode === "refuse" || (plan.mode === "flaky" && tries === 1)) {
      execution.ended = "refused";
      response.writeHead(500, { "content-type": "application/json" });
      response.end('{"error":{"type":"server_error","message":"as planned"}}');
      return;
    }
    await this.#reply(plan, execution, response);
  }

  async #reply(plan: ReplyPlan, execution: Execution, response: ServerResponse): Promise<void> {
    if (plan.firstMs > 0) await wait(plan.firstMs);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const usage =
      plan.mode === "mute"
        ? undefined
        : {
            input: plan.inputTokens + (plan.mode === "boast" ? BOAST_TOKENS : 0),
            output: plan.outputTokens + (plan.mode === "boast" ? BOAST_TOKENS : 0),
          };
    const reply = { pieces: [], finishReason: "stop", usage } as const;
    response.write(openaiWire.begin(reply));
    for (let i = 0; i < plan.pieces; i++) {
      if (response.destroyed) return;
      execution.pieces++;
      response.write(openaiWire.piece(pieceOf(execution.op, i)));
      if (plan.mode === "break" && i === plan.pieces >> 1) {
        execution.ended = "broke";
        response.destroy();
        return;
      }
      if (plan.gapMs > 0) await wait(plan.gapMs);
    }
    if (response.destroyed) return;
    execution.ended = "whole";
    response.end(openaiWire.end(reply));
    this.#onWhole.shift()?.();
  }
}
