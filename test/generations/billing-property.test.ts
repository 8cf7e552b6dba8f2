import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { findAnswer } from "../../src/generations/billing.ts";
import { revokeKey } from "../../src/keys/store.ts";
import { TEST_ACTION } from "../support/action.ts";
import { createPayer, credit, endOf, holdOf, moneyProblems, newGenerationId, type Payer } from "../support/payer.ts";
import { runs } from "../support/runs.ts";
import { useStore } from "../support/store.ts";
import { UncheckedBilling } from "../support/unchecked-billing.ts";

/** Random interleavings of everything that moves money, held against a reference that is plain arithmetic. */

const store = useStore();
let billing: UncheckedBilling;

beforeAll(async () => {
  // All that is sent in one turn is one batch, in a known order.
  billing = new UncheckedBilling(store.database, "one");
});

const PAYERS = 3;
const payer = fc.nat(PAYERS - 1);
const idempotency = fc.option(fc.nat(1), { nil: undefined, freq: 2 });
const hold = fc.record({ do: fc.constant("hold" as const), payer, amount: fc.bigInt(0n, 60n), idempotency, payload: fc.nat(1) });
const settle = fc.record({ do: fc.constant("settle" as const), of: fc.nat(30), charge: fc.bigInt(0n, 80n) });
const release = fc.record({ do: fc.constant("void" as const), of: fc.nat(30) });
const step = fc.oneof({ weight: 3, arbitrary: hold }, { weight: 2, arbitrary: settle }, { weight: 1, arbitrary: release });
const batch = fc.record({ kind: fc.constant("batch" as const), steps: fc.array(step, { maxLength: 12 }) });
const posted = fc.record({ kind: fc.constant("credit" as const), payer, amount: fc.bigInt(1n, 100n) });
const revoke = fc.record({ kind: fc.constant("revoke" as const), payer });
const turn = fc.oneof({ weight: 6, arbitrary: batch }, { weight: 2, arbitrary: posted }, { weight: 1, arbitrary: revoke });
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type Turn = typeof turn extends fc.Arbitrary<infer Value> ? Value : never;

/** A key that has to be quoted in an array of rows. */
const keyOf = (idempotency: number) => `k "${idempotency}" \\`;
/** The answer to the hold. */
const answerOf = (index: number) => `{"text":"a \\"${index}\\" {c}, é"}`;

type ReferenceHold = {
  payer: number;
  amount: bigint;
  idempotency: number | undefined;
  open: boolean;
  charged?: bigint;
  after?: bigint;
};

/** What must happen, in as few words as possible. */
class Reference {
  readonly balances = Array<bigint>(PAYERS).fill(100n);
  readonly revoked = Array<boolean>(PAYERS).fill(false);
  readonly rows = Array.from({ length: PAYERS }, () => [100n]);
  readonly holds: ReferenceHold[] = [];
  readonly answers = new Map<string, { payload: number; hold: ReferenceHold; isAnswered: boolean }>();

  held(payer: number): bigint {
    return this.holds.reduce((sum, hold) => (hold.open && hold.payer === payer ? sum + hold.amount : sum), 0n);
  }

  credit(payer: number, amount: bigint): void {
    this.balances[payer] = (this.balances[payer] as bigint) + amount;
    this.rows[payer]?.push(amount);
  }

  hold(step: Extract<Step, { do: "hold" }>): object {
    const { payer, amount, idempotency, payload } = step;
    const entry: ReferenceHold = { payer, amount, idempotency, open: false };
    this.holds.push(entry);
    if (this.revoked[payer]) return { outcome: "outdated" };
    const key = `${payer}/${idempotency}`;
    const known = idempotency === undefined ? undefined : this.answers.get(key);
    if (known && known.payload !== payload) return { outcome: "reused" };
    if (known?.isAnswered) return { outcome: "answered" };
    if (known) return { outcome: "running" };
    const [balanceMicros, heldMicros] = [this.balances[payer] as bigint, this.held(payer)];
    if (balanceMicros - heldMicros < amount) return { outcome: "insufficient", balanceMicros, heldMicros };
    entry.open = true;
    if (idempotency !== undefined) this.answers.set(key, { payload, hold: entry, isAnswered: false });
    return { outcome: "held" };
  }

  end(index: number, charge: bigint | undefined): object {
    const hold = this.holds[index] as ReferenceHold;
    if (hold.open) {
      hold.open = false;
      const key = `${hold.payer}/${hold.idempotency}`;
      if (charge === undefined) {
        if (this.answers.get(key)?.hold === hold) this.answers.delete(key);
        return { outcome: "released" };
      }
      hold.charged = charge < hold.amount ? charge : hold.amount;
      this.credit(hold.payer, -hold.charged);
      hold.after = this.balances[hold.payer] as bigint;
      const answer = this.answers.get(key);
      if (answer?.hold === hold) answer.isAnswered = true;
    }
    if (hold.charged === undefined) return { outcome: "missing" };
    return { outcome: "settled", balanceMicros: hold.after, chargedMicros: hold.charged };
  }
}

async function run(turns: readonly Turn[], steps: "together" | "one by one"): Promise<void> {
  const payers: Payer[] = [];
  // Two have the same lane, and keys of their own.
  for (let i = 0; i < PAYERS; i++)
    payers.push(await createPayer(store.database, 100n, i === 1 ? laneOfId(payers[0]?.accountId ?? "") : undefined));
  const reference = new Reference();
  const ids: string[] = [];
  for (const turn of turns) {
    if (turn.kind === "credit") {
      await credit(store.database, (payers[turn.payer] as Payer).accountId, turn.amount);
      reference.credit(turn.payer, turn.amount);
    } else if (turn.kind === "revoke") {
      const { keyId } = payers[turn.payer] as Payer;
      await revokeKey(store.database, TEST_ACTION, keyId);
      reference.revoked[turn.payer] = true;
    } else {
      const batches = steps === "together" ? [turn.steps] : turn.steps.map((step) => [step]);
      for (const batch of batches) await runBatch(batch, payers, reference, ids);
    }
  }
  for (const [i, { accountId }] of payers.entries()) {
    const [account] = await store.owner`SELECT balance_micros, held_micros FROM vx.accounts WHERE id = ${accountId}`;
    expect([account?.balance_micros, account?.held_micros].map(BigInt)).toEqual([reference.balances[i], reference.held(i)]);
    const rows = await store.owner`SELECT amount_micros FROM vx.ledger WHERE account_id = ${accountId} ORDER BY seq`;
    expect(rows.map((row) => BigInt(row.amount_micros))).toEqual(reference.rows[i]);
    for (const [index, hold] of reference.holds.entries()) {
      const known = reference.answers.get(`${i}/${hold.idempotency}`);
      if (known?.hold !== hold) continue;
      const answer = await findAnswer(store.database, accountId, keyOf(hold.idempotency ?? 0));
      expect(answer).toBe(known.isAnswered ? answerOf(index) : undefined);
    }
  }
}

/** A hold is ended once per batch here: which of two ends comes first is not promised. */
async function runBatch(steps: readonly Step[], payers: readonly Payer[], reference: Reference, ids: string[]) {
  const before = ids.length;
  const ended = new Set<number>();
  const ends = steps.flatMap((step) => {
    if (step.do === "hold" || before === 0) return [];
    const index = step.of % before;
    if (ended.has(index)) return [];
    ended.add(index);
    return [{ index, charge: step.do === "settle" ? step.charge : undefined }];
  });
  // Rows of one batch are written in the order of their generations' ids.
  ends.sort((a, b) => a.index - b.index);
  const holds = steps.filter((step) => step.do === "hold");
  const outcomes = Promise.all([
    ...ends.map(({ index, charge }) => {
      const owner = payers[reference.holds[index]?.payer ?? 0] as Payer;
      return billing.end(endOf(owner, ids[index] as string, charge, answerOf(index)));
    }),
    ...holds.map((step) => {
      const payer = payers[step.payer] as Payer;
      const id = newGenerationId(payer);
      ids.push(id);
      const asked = step.idempotency === undefined ? undefined : { key: keyOf(step.idempotency), digest: `${step.payload}` };
      return billing.hold(holdOf(payer, step.amount, id, asked));
    }),
  ]);
  const expected = [
    ...ends.map(({ index, charge }) => reference.end(index, charge)),
    ...holds.map((step) => reference.hold(step)),
  ];
  expect(await outcomes).toEqual(expected);
}

test.each(["together", "one by one"] as const)(
  "random credits, holds, settlements, voids, revocations and retries, sent %s, have the results of plain arithmetic",
  async (steps) => {
    const property = fc.asyncProperty(fc.array(turn, { maxLength: 14 }), (turns) => run(turns, steps));
    await fc.assert(property, { numRuns: runs(20) });
    expect(await moneyProblems(store)).toEqual([]);
  },
);
