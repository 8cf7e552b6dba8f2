import { setTimeout as wait } from "node:timers/promises";
import type { Arena } from "./arena.ts";
import { MODEL } from "./settings.ts";
import { createPlans, Operator } from "./tenants.ts";
import { promptOf } from "./upstream.ts";

const PAUSE_MS = 100;
const OP = 99_000_000;

/** A separate account that calls every server until it gets a reply. */
export class Probe {
  readonly #arena: Arena;
  readonly #secret: string;
  #op = OP;
  /** When a server last failed to generate. */
  lastFailureAt = 0;

  private constructor(arena: Arena, secret: string) {
    this.#arena = arena;
    this.#secret = secret;
  }

  static async create(arena: Arena): Promise<Probe> {
    const operator = new Operator(() => `http://127.0.0.1:${arena.servers[0]?.adminPort}`);
    await createPlans(operator);
    const { account } = await operator.must("CreateAccount", { name: "probe", plan: "torture" });
    const { id } = account as { id: string };
    const credit = { accountId: id, amountMicros: "1000000000", reason: "probe", idempotencyKey: id };
    await operator.must("CreditAccount", credit);
    const { secret } = await operator.must("CreateKey", { accountId: id, name: "probe", scopes: ["generate"] });
    return new Probe(arena, secret as string);
  }

  /** Waits until every server has generated. Returns false if one does not within this time. */
  async areServing(patienceMs: number): Promise<boolean> {
    const until = performance.now() + patienceMs;
    const served = this.#arena.servers.map(async ({ url }) => {
      while (!(await this.#isServing(url)) || !(await hasAllCells(url))) {
        this.lastFailureAt = performance.now();
        if (this.lastFailureAt > until) return false;
        await wait(PAUSE_MS);
      }
      return true;
    });
    return (await Promise.all(served)).every(Boolean);
  }

  async #isServing(url: string): Promise<boolean> {
    const reply = { pieces: 2, firstMs: 0, gapMs: 0, mode: "fine", inputTokens: 5, outputTokens: 2 } as const;
    const content = promptOf(this.#op++, reply);
    try {
      const answer = await fetch(`${url}/v1/generate`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${this.#secret}` },
        body: JSON.stringify({ model: MODEL.id, messages: [{ role: "user", content }], max_tokens: 10 }),
        signal: AbortSignal.timeout(10_000),
      });
      await answer.arrayBuffer();
      return answer.status === 200;
    } catch {
      return false;
    }
  }
}

/** The body of /readyz names the cells that cannot be used. */
async function hasAllCells(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) });
    return (await answer.text()) === "ready\n";
  } catch {
    return false;
  }
}
