// Durable holds and settlements directly against the store, batched, over many accounts and over one.
import { typeIds } from "../src/domain/ids.ts";
import { laneOfId } from "../src/domain/lane.ts";
import { Billing, type HoldOutcome } from "../src/store/billing.ts";
import { Database } from "../src/store/driver/database.ts";
import { DatabaseClock } from "../src/store/driver/database-clock.ts";
import { type BenchDatabase, createKeys, type Figure, hammer, median } from "./support.ts";

const ACCOUNTS = 1_000;
const CALLERS = 256;
const SECONDS = 2;
const ROUNDS = 3;

type Payer = { readonly id: string; readonly keyId: string };

export async function billing(database: BenchDatabase): Promise<Figure[]> {
  await createKeys(database.owner, ACCOUNTS);
  await database.owner`UPDATE vx.accounts SET balance_micros = 1000000000000`;
  const payers = await database.owner<Payer[]>`SELECT account_id AS id, id AS "keyId" FROM vx.keys`;
  const options = { statementTimeoutMs: 5_000, maxStatements: 4_096, maxWaitMs: 5_000, role: "vx_app" };
  const pool = new Database(database.address, { ...options, connections: 1, name: "bench" });
  const sizes: number[] = [];
  const till = new Billing(pool, {
    serverId: "bench",
    clock: new DatabaseClock(() => performance.now()),
    pipelines: 1,
    maxWaiting: 16_384,
    onBatch: (size) => sizes.push(size),
  });
  const many = () => generation(till, payers[Math.floor(Math.random() * payers.length)] as Payer);
  const one = () => generation(till, payers[0] as Payer);

  await hammer(CALLERS, 1, many);
  const rounds: { many: number; one: number; alone: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      many: (await hammer(CALLERS, SECONDS, many)).perSecond,
      one: (await hammer(CALLERS, SECONDS, one)).perSecond,
      alone: (await hammer(1, SECONDS, many)).p50Ms,
    });
  }
  await pool.close();
  return [
    {
      name: `hold and settle, ${CALLERS} callers, ${ACCOUNTS} accounts`,
      value: median(rounds.map((r) => r.many)),
      unit: "/s",
    },
    {
      name: `hold and settle, ${CALLERS} callers, one account`,
      value: median(rounds.map((r) => r.one)),
      unit: "/s",
    },
    {
      name: "one account / many accounts",
      value: median(rounds.map((r) => r.one / r.many)),
      unit: "×",
      atLeast: 1,
    },
    { name: "hold and settle, one caller, p50", value: median(rounds.map((r) => r.alone)), unit: "ms" },
  ];
}

async function generation(till: Billing, payer: Payer): Promise<void> {
  const holdId = typeIds.generation(laneOfId(payer.id));
  const held: HoldOutcome = await till.hold({
    holdId,
    accountId: payer.id,
    keyId: payer.keyId,
    amountMicros: 4_000n,
    seconds: 600,
    idempotency: undefined,
  });
  if (held.outcome !== "held") throw new Error(`the hold was ${held.outcome}`);
  const ended = await till.end({
    holdId,
    accountId: payer.id,
    charge: {
      amountMicros: 1_234n,
      reason: "Generation with vx-sandbox-small: 12 tokens in, 40 tokens out",
      requestId: "req_0123456789abcdef0123456789abcdef",
      keyId: payer.keyId,
      model: "vx-sandbox-small",
      inputTokens: 12,
      outputTokens: 40,
      inputPrice: 100_000n,
      outputPrice: 400_000n,
      answer: undefined,
    },
  });
  if (ended.outcome !== "settled") throw new Error("the hold was gone");
}
