import { randomBytes } from "node:crypto";
import { createAccount } from "../../src/accounts/store.ts";
import type { Database } from "../../src/database/driver/database.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { type Lane, laneOfId, withLane } from "../../src/domain/lane.ts";
import { usageOf } from "../../src/domain/price.ts";
import { DEFAULT_SCOPES } from "../../src/domain/scope.ts";
import type { Charge, EndRequest, HoldRequest } from "../../src/generations/bill-statement.ts";
import type { Billing } from "../../src/generations/billing.ts";
import type { AdmittedKey } from "../../src/keys/admit.ts";
import { createKey } from "../../src/keys/store.ts";
import { moveBalance } from "../../src/ledger/store.ts";
import { registerPrices } from "../../src/prices/store.ts";
import { TEST_ACTION } from "./action.ts";
import type { TestDatabase } from "./database.ts";
import { EXPECTED_HASH } from "./ledger-hash.ts";
import { modelOf } from "./samples.ts";
import { typeIds } from "./type-ids.ts";

/** The model of all charges. */
const MODEL = modelOf();

/** An account with a balance and a key, created directly in the store. */
export type Payer = HoldRequest["admitted"] & Pick<AdmittedKey, "accountId" | "keyId">;

/** A key with the scopes and the prices that most keys have. */
export function payerOf(accountId: string, keyId: string, fingerprint = ""): Payer {
  return { accountId, keyId, fingerprint, scopes: DEFAULT_SCOPES, allowedCidrs: undefined, priceListVersion: 0 };
}

export async function createPayer(database: Database, balanceMicros: bigint, inLane?: Lane): Promise<Payer> {
  const { id } = await createAccount(database, TEST_ACTION, {
    id: inLane === undefined ? typeIds.account() : withLane(typeIds.account(), inLane),
    name: "payer",
    plan: "scale",
  });
  const lane = laneOfId(id);
  const key = {
    id: typeIds.key(lane),
    accountId: id,
    columns: { name: "payer" },
  };
  const newKey = generateKey(lane, randomBytes);
  await createKey(database, TEST_ACTION, key, newKey);
  await registerPrices(database, [MODEL]);
  if (balanceMicros > 0n) await credit(database, id, balanceMicros);
  return payerOf(id, key.id, newKey.fingerprint);
}

type Movement = Parameters<typeof moveBalance>[2];

/** A credit or, of a negative amount, an adjustment. */
export async function move(database: Database, accountId: string, amountMicros: bigint, more: Partial<Movement> = {}) {
  const entryId = typeIds.entry(laneOfId(accountId));
  const kind = amountMicros < 0n ? "adjustment" : "credit";
  const movement = { entryId, accountId, kind, amountMicros, reason: "test", idempotencyKey: entryId } as const;
  return await moveBalance(database, TEST_ACTION, { ...movement, ...more });
}

export const credit: (database: Database, accountId: string, amountMicros: bigint) => Promise<unknown> = move;

/** An id for a generation of the payer. */
export function newGenerationId({ accountId }: Payer): string {
  return typeIds.generation(laneOfId(accountId));
}

export function holdOf(
  payer: Payer,
  amountMicros: bigint,
  generationId = newGenerationId(payer),
  idempotency?: HoldRequest["idempotency"],
): HoldRequest {
  return {
    generationId,
    accountId: payer.accountId,
    keyId: payer.keyId,
    admitted: payer,
    amountMicros,
    tokens: Number(amountMicros),
    model: MODEL.id,
    user: "",
    seconds: 600,
    idempotency,
  };
}

export function endOf(payer: Payer, generationId: string, amountMicros: bigint | undefined, answer?: string): EndRequest {
  const charge: Charge | undefined =
    amountMicros === undefined
      ? undefined
      : {
          amountMicros,
          reason: 'Generation, "quoted" \\ and é…',
          requestId: `req_${generationId}`,
          keyId: payer.keyId,
          traceId: "",
          user: 'a "user" \\ é',
          model: MODEL.id,
          usage: usageOf({ inputTokens: Number(amountMicros), outputTokens: 0 }),
          prices: MODEL.prices,
          priceVersion: 1,
          priceListVersion: 0,
          upstream: "sandbox",
          upstreamCostMicros: 5n,
          answer,
        };
  return { generationId, accountId: payer.accountId, charge };
}

/** Holds the amount for a new generation of the payer, and returns its id. */
export async function placeHold(
  billing: { hold(request: HoldRequest): Promise<object> },
  payer: Payer,
  amountMicros: bigint,
): Promise<string> {
  const id = newGenerationId(payer);
  await billing.hold(holdOf(payer, amountMicros, id));
  return id;
}

/** A generation of the payer, from its hold to its charge. */
export async function charge(billing: Billing, payer: Payer, micros: bigint, user = ""): Promise<void> {
  const id = await placeHold(billing, payer, micros);
  const end = endOf(payer, id, micros);
  await billing.end({ ...end, charge: end.charge && { ...end.charge, user } });
}

/** The entries of an account in order, by their kind and amount. */
export async function entriesOf(
  { owner }: Pick<TestDatabase, "owner">,
  { accountId }: Payer,
): Promise<[kind: string, micros: number][]> {
  const rows = await owner<{ kind: string; amount: number }[]>`
    SELECT kind, amount_micros::int AS amount FROM vx.ledger WHERE account_id = ${accountId} ORDER BY seq`;
  return rows.map(({ kind, amount }) => [kind, amount]);
}

/** What an account has, what its calls hold, and what it owes. */
export async function moneyOf({ owner }: Pick<TestDatabase, "owner">, { accountId }: Payer) {
  const [row] = await owner<{ balance: number; held: number; owed: number }[]>`
    SELECT balance_micros::int AS balance, held_micros::int AS held, owed_micros::int AS owed FROM vx.accounts WHERE id = ${accountId}`;
  return row;
}

/** Checks the money invariants of every account directly in the tables. Empty if all hold. */
export async function moneyProblems({ owner }: Pick<TestDatabase, "owner">): Promise<object[]> {
  return await owner`
    WITH chain AS (
      SELECT l.account_id, l.seq, l.amount_micros, l.balance_after_micros, l.hash,
             ${owner.unsafe(EXPECTED_HASH)} AS expected_hash, row_number() OVER c AS place,
             sum(l.amount_micros) OVER c AS running
      FROM vx.ledger l WINDOW c AS (PARTITION BY l.account_id ORDER BY l.seq)
    )
    SELECT 'entry' AS what, account_id AS id, seq::text AS detail FROM chain
    WHERE hash <> expected_hash OR seq <> place OR running <> balance_after_micros
    UNION ALL
    SELECT 'account', a.id, concat(a.balance_micros, ' held ', a.held_micros)
    FROM vx.accounts a
    WHERE a.balance_micros <> (SELECT coalesce(sum(amount_micros), 0) FROM vx.ledger l WHERE l.account_id = a.id)
       OR a.held_micros <> (SELECT coalesce(sum(amount_micros), 0) FROM vx.holds h WHERE h.account_id = a.id)
       OR a.held_micros NOT BETWEEN 0 AND a.balance_micros
       OR a.last_seq <> (SELECT count(*) FROM vx.ledger l WHERE l.account_id = a.id)`;
}
