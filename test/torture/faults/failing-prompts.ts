import { setTimeout as wait } from "node:timers/promises";
import type { Arena } from "../arena.ts";
import { MODEL } from "../settings.ts";
import { Operator } from "../tenants.ts";
import { promptOf, type ReplyPlan } from "../upstream.ts";
import type { Fault } from "./fault.ts";

const BURSTS = 8;
/** Calls sent at once to each server, far more than the consecutive failures that open the breaker. */
const BURST = 20;
const PAUSE_MS = 300;
/** Higher than the number of any planned call. */
const FIRST_OP = 90_000_000;
const REFUSED: ReplyPlan = { pieces: 1, firstMs: 0, gapMs: 0, mode: "refuse", inputTokens: 1, outputTokens: 1 };

let attacks = 0;
/** The secrets of the attacking accounts, which are created before the load begins. */
const attackers = new WeakMap<Arena, string>();

/**
 * One account keeps sending prompts that the upstream answers with 500. Other accounts must not be affected.
 */
export const failingPrompts: Fault = {
  name: "one account's prompts fail",
  isHarmless: true,
  lastsSeconds: 5,
  prepare: async (arena) => {
    const operator = new Operator(() => `http://127.0.0.1:${arena.servers[0]?.adminPort}`);
    attackers.set(arena, await createAttacker(operator));
  },
  strike: async ({ arena }) => {
    const secret = attackers.get(arena) ?? "";
    for (let i = 0; i < BURSTS; i++) {
      const burst = arena.servers.flatMap(({ url }) => Array.from({ length: BURST }, () => attack(url, secret)));
      await Promise.all(burst);
      await wait(PAUSE_MS);
    }
  },
};

async function createAttacker(operator: Operator): Promise<string> {
  const { account } = await operator.must("CreateAccount", { name: "attacker", plan: "torture" });
  const { id } = account as { id: string };
  await operator.must("CreditAccount", {
    accountId: id,
    amountMicros: "1000000000",
    reason: "torture",
    idempotencyKey: `first-${id}`,
  });
  const { secret } = await operator.must("CreateKey", { accountId: id, name: "attacker", scopes: ["generate"] });
  return secret as string;
}

async function attack(url: string, secret: string): Promise<void> {
  const messages = [{ role: "user", content: promptOf(FIRST_OP + attacks++, REFUSED) }];
  try {
    const response = await fetch(`${url}/v1/generate`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
      body: JSON.stringify({ model: MODEL.id, messages, max_tokens: 10 }),
    });
    await response.arrayBuffer();
  } catch {
    // With several faults, another one may have killed the server.
  }
}
