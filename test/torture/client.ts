import { Agent, type IncomingMessage, request } from "node:http";
import { type Ending, type Entry, isReply } from "./history.ts";
import { limitJson } from "./limits.ts";
import type { PlannedCall } from "./plan.ts";
import { PRICED_MODEL, pricesJson, RERATINGS } from "./prices.ts";
import type { RunServer } from "./server.ts";
import { MODEL, OPERATOR_TOKEN } from "./settings.ts";
import type { KeyName, Tenants } from "./tenants.ts";
import { promptOf } from "./upstream.ts";

/** The caller's timeout for a whole response. */
const PATIENCE_MS = 25_000;

type Request = {
  readonly method: string;
  readonly path: string;
  readonly secret: string | undefined;
  readonly body?: object | Buffer;
  readonly isOperators?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Sends planned calls to the servers over keep-alive connections. */
export class Client {
  readonly #servers: readonly RunServer[];
  readonly #agents: readonly Agent[];
  readonly #operatorAgents: readonly Agent[];
  /** The id of the last generation of each key. */
  readonly #generationIds = new Map<KeyName, string>();
  /** The generation of each operation of refunds. */
  readonly #refunded = new Map<number, string>();

  constructor(servers: readonly RunServer[]) {
    this.#servers = servers;
    this.#agents = servers.map(() => new Agent({ keepAlive: true }));
    this.#operatorAgents = servers.map(() => new Agent({ keepAlive: true }));
  }

  close(): void {
    for (const agent of [...this.#agents, ...this.#operatorAgents]) agent.destroy();
  }

  /** All refunds of an operation are about the same generation. */
  #refundedId({ op, key }: PlannedCall): string {
    const id = this.#refunded.get(op) ?? this.#generationIds.get(key) ?? NO_GENERATION;
    this.#refunded.set(op, id);
    return id;
  }

  /** Never throws: the entry records any failure. */
  send(call: PlannedCall, tenants: Tenants, plannedAt: number): Promise<Entry> {
    const refundedId = call.kind === "refund_entry" ? this.#refundedId(call) : "";
    const { method, path, secret, body, isOperators, headers } = requestOf(call, tenants, refundedId);
    const server = this.#servers[call.server];
    if (!server) throw new Error(`there is no server ${call.server}`);
    const sentAt = performance.now();
    const answer = new Answer(call);
    return new Promise((resolve) => {
      let finished = false;
      const finish = (ending: Ending) => {
        if (finished) return;
        finished = true;
        clearTimeout(patience);
        clearTimeout(leaving);
        const entry = { ...call, ...answer.read(), plannedAt, sentAt, endedAt: performance.now(), ending };
        if (isReply(entry)) this.#generationIds.set(entry.key, entry.id);
        resolve(entry);
        if (ending !== "answered") outgoing.destroy();
      };
      const outgoing = request({
        host: "127.0.0.1",
        port: isOperators ? server.adminPort : server.port,
        agent: (isOperators ? this.#operatorAgents : this.#agents)[call.server],
        method,
        path,
        headers: {
          "x-request-id": call.requestId,
          ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
          ...(call.idempotencyKey !== undefined && call.reply ? { "idempotency-key": call.idempotencyKey } : {}),
        },
      });
      const patience = setTimeout(() => finish("silent"), PATIENCE_MS);
      const leaving = setTimeout(() => finish("left"), call.leavesAfterMs ?? PATIENCE_MS * 2);
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        finish(error.code === "ECONNREFUSED" ? "unreached" : "broken");
      });
      outgoing.on("response", (response: IncomingMessage) => {
        answer.status = response.statusCode ?? 0;
        response.setEncoding("utf8");
        response.on("data", (text: string) => answer.add(text));
        response.on("error", () => finish("broken"));
        response.on("end", () => finish(response.complete ? "answered" : "broken"));
        response.on("close", () => finish("broken"));
      });
      outgoing.end(body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body));
    });
  }
}

function requestOf(call: PlannedCall, tenants: Tenants, refundedId: string): Request {
  const key = tenants.keys.get(call.key);
  const secret = key?.secret;
  const generation = (more: object = {}) => ({
    model: call.model ?? MODEL.id,
    messages: [{ role: "user", content: promptOf(call.op, call.reply as NonNullable<typeof call.reply>) }],
    max_tokens: call.maxTokens ?? 50,
    ...(call.user === undefined ? {} : { user: call.user }),
    ...more,
  });
  const post = (path: string, body: object) => ({ method: "POST", path, secret, body });
  const operate = (method: string, body: object | Buffer) => ({
    ...post(`/vx.admin.v1.AdminService/${method}`, body),
    secret: OPERATOR_TOKEN,
    isOperators: true,
  });
  switch (call.kind) {
    case "generate":
      return call.deadlineMs === undefined
        ? post("/v1/generate", generation())
        : {
            ...post("/vx.v1.GenerateService/Generate", generation()),
            headers: { "connect-protocol-version": "1", "connect-timeout-ms": String(call.deadlineMs) },
          };
    case "stream":
      return post("/v1/generate", generation({ stream: true }));
    case "bad_field":
      return post("/v1/generate", generation({ temperature: 2.5 }));
    case "unknown_model":
      return post("/v1/generate", generation({ model: "nobody-knows-it" }));
    case "no_key":
      return { ...post("/v1/generate", generation()), secret: undefined };
    case "create_key":
      return post("/v1/keys", {
        name: `made by ${call.requestId}`,
        scopes: ["read"],
        limits: (call.limits ?? []).map(limitJson),
      });
    case "revoke_key":
      return post(`/v1/keys/${tenants.keys.get(call.victim ?? "")?.id}:revoke`, {});
    case "credit":
      return operate("CreditAccount", {
        accountId: key?.accountId,
        amountMicros: "1000",
        reason: "a credit under fire",
        idempotencyKey: call.idempotencyKey,
      });
    case "refund_entry":
      return operate("RefundEntry", {
        accountId: key?.accountId,
        entryId: refundedId,
        amountMicros: String(call.micros),
        reason: call.idempotencyKey,
        idempotencyKey: call.idempotencyKey,
      });
    case "rerate":
      return {
        ...operate("Rerate", envelopeOf(reratingJson(call.rerating ?? 0, tenants.startedAt))),
        headers: { "content-type": "application/connect+json", "connect-protocol-version": "1" },
      };
    case "set_prices": {
      const { discount, prices } = call.terms ?? {};
      return operate("SetAccountPrices", {
        accountId: key?.accountId,
        model: PRICED_MODEL,
        ...(discount === undefined ? {} : { discountBps: discount }),
        ...(prices === undefined ? {} : { prices: pricesJson(prices) }),
      });
    }
    case "set_limits":
      return operate("UpdateKey", {
        keyId: tenants.keys.get(call.victim ?? "")?.id,
        limits: (call.limits ?? []).map(limitJson),
        updateMask: "limits",
      });
    case "me":
    case "models":
    case "ledger":
    case "events":
      return { method: "GET", path: `/v1/${call.kind}`, secret };
  }
}

/** Every generation has another id. */
const NO_GENERATION = `gen_${"0".repeat(26)}`;
const HOUR_MS = 3_600_000;

/** A re-rating of what the accounts of the episode were charged. Its repetitions are the same, so that they continue it. */
function reratingJson(number: number, startedAt: number): object {
  return {
    model: PRICED_MODEL,
    from: new Date(startedAt).toISOString(),
    to: new Date(startedAt + HOUR_MS).toISOString(),
    prices: pricesJson(RERATINGS[number] as (typeof RERATINGS)[number]),
    reason: reratingReason(number),
    apply: true,
  };
}

export function reratingReason(number: number): string {
  return `re-rating ${number}`;
}

/** The only message of a stream. */
function envelopeOf(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(text.length, 1);
  return Buffer.concat([prefix, text]);
}

/** What only operators may see. */
const COSTS = /"(upstream|margin)_?(cost|micros)|127\.0\.0\.1:\d+\/v1/i;

/** Reads a response as it arrives, so that a broken one is known as far as it came. */
class Answer {
  status = 0;
  readonly #call: PlannedCall;
  #text = "";
  #pieces = 0;
  #content = "";
  #done: Record<string, unknown> | undefined;
  #isDone = false;
  #code = "";
  #errorText = "";
  #showsCosts = false;

  constructor(call: PlannedCall) {
    this.#call = call;
  }

  add(text: string): void {
    this.#text += text;
    if (this.#call.kind !== "stream" || this.status !== 200) return;
    for (let end = this.#text.indexOf("\n\n"); end >= 0; end = this.#text.indexOf("\n\n")) {
      this.#event(this.#text.slice(0, end));
      this.#text = this.#text.slice(end + 2);
    }
  }

  read() {
    const showsCosts = this.#showsCosts || COSTS.test(this.#text);
    if (this.#call.kind === "rerate") this.#isDone = this.status === 200 && !this.#text.includes('"error"');
    else if (this.#call.kind !== "stream" || this.status !== 200) this.#readWhole();
    const usage = this.#done?.usage as { cost_micros?: number; costMicros?: string } | undefined;
    // In the JSON of REST or of Connect.
    const costMicros = usage?.cost_micros ?? usage?.costMicros;
    return {
      status: this.status,
      code: this.#code,
      id: String(this.#done?.id ?? (this.#done?.api_key as { id: string } | undefined)?.id ?? ""),
      content: this.#content,
      pieces: this.#pieces,
      isDone: this.#isDone,
      costMicros: costMicros === undefined ? undefined : BigInt(costMicros),
      errorText: this.#errorText,
      showsCosts,
    };
  }

  #event(text: string): void {
    this.#showsCosts ||= COSTS.test(text);
    const data = text.replace(/^data: /, "");
    if (text.startsWith(":")) return;
    if (data === "[DONE]") {
      this.#isDone = this.#done !== undefined;
      return;
    }
    const event = JSON.parse(data) as { delta?: { content: string }; done?: Record<string, unknown>; error?: { code: string } };
    if (event.delta) {
      this.#pieces++;
      this.#content += event.delta.content;
    }
    if (event.done) this.#done = event.done;
    if (event.error) {
      this.#code = event.error.code;
      this.#errorText = data;
    }
  }

  #readWhole(): void {
    if (this.status !== 200) this.#errorText = this.#text;
    try {
      const body = JSON.parse(this.#text) as Record<string, unknown>;
      const error = body.error as { code: string } | undefined;
      this.#code = error?.code ?? String(body.code ?? "");
      if (this.status !== 200) return;
      this.#done = body;
      this.#content = (body.message as { content: string } | undefined)?.content ?? "";
    } catch {
      // The response was cut; the entry records it.
    }
  }
}
