import { Agent, type IncomingMessage, request } from "node:http";
import type { Ending, Entry } from "./history.ts";
import { limitJson } from "./limits.ts";
import type { PlannedCall } from "./plan.ts";
import type { RunServer } from "./server.ts";
import { MODEL, OPERATOR_TOKEN } from "./settings.ts";
import type { Tenants } from "./tenants.ts";
import { promptOf } from "./upstream.ts";

/** The caller's timeout for a whole response. */
const PATIENCE_MS = 25_000;

type Request = {
  readonly method: string;
  readonly path: string;
  readonly secret: string | undefined;
  readonly body?: object;
  readonly isOperators?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Sends planned calls to the servers over keep-alive connections. */
export class Client {
  readonly #servers: readonly RunServer[];
  readonly #agents: readonly Agent[];
  readonly #operatorAgents: readonly Agent[];

  constructor(servers: readonly RunServer[]) {
    this.#servers = servers;
    this.#agents = servers.map(() => new Agent({ keepAlive: true }));
    this.#operatorAgents = servers.map(() => new Agent({ keepAlive: true }));
  }

  close(): void {
    for (const agent of [...this.#agents, ...this.#operatorAgents]) agent.destroy();
  }

  /** Never throws: the entry records any failure. */
  send(call: PlannedCall, tenants: Tenants, plannedAt: number): Promise<Entry> {
    const { method, path, secret, body, isOperators, headers } = requestOf(call, tenants);
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
        resolve({ ...call, ...answer.read(), plannedAt, sentAt, endedAt: performance.now(), ending });
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
          ...headers,
          ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(call.idempotencyKey !== undefined && call.reply
            ? { "idempotency-key": call.idempotencyKey }
            : {}),
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
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

function requestOf(call: PlannedCall, tenants: Tenants): Request {
  const key = tenants.keys.get(call.key);
  const secret = key?.secret;
  const generation = (more: object = {}) => ({
    model: MODEL.id,
    messages: [{ role: "user", content: promptOf(call.op, call.reply as NonNullable<typeof call.reply>) }],
    max_tokens: call.maxTokens ?? 50,
    ...(call.user === undefined ? {} : { user: call.user }),
    ...more,
  });
  const post = (path: string, body: object) => ({ method: "POST", path, secret, body });
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
      return {
        ...post("/vx.admin.v1.AdminService/CreditAccount", {
          accountId: key?.accountId,
          amountMicros: "1000",
          reason: "a credit under fire",
          idempotencyKey: call.idempotencyKey,
        }),
        secret: OPERATOR_TOKEN,
        isOperators: true,
      };
    case "set_limits":
      return {
        ...post("/vx.admin.v1.AdminService/UpdateKey", {
          keyId: tenants.keys.get(call.victim ?? "")?.id,
          limits: (call.limits ?? []).map(limitJson),
          updateMask: "limits",
        }),
        secret: OPERATOR_TOKEN,
        isOperators: true,
      };
    case "me":
    case "models":
    case "ledger":
      return { method: "GET", path: `/v1/${call.kind}`, secret };
  }
}

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
    if (this.#call.kind !== "stream" || this.status !== 200) this.#readWhole();
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
    };
  }

  #event(text: string): void {
    const data = text.replace(/^data: /, "");
    if (text.startsWith(":")) return;
    if (data === "[DONE]") {
      this.#isDone = this.#done !== undefined;
      return;
    }
    const event = JSON.parse(data) as {
      delta?: { content: string };
      done?: Record<string, unknown>;
      error?: { code: string };
    };
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
