import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type InvariantViolation, onViolation } from "../../src/domain/invariant.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { type BillItem, bill, type Charge, type EndRequest, type HoldRequest } from "../../src/generations/bill-statement.ts";
import type { Billing } from "../../src/generations/billing.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { createPayer, endOf, holdOf, newGenerationId, type Payer, placeHold } from "../support/payer.ts";
import { clock, createTestBilling, useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";
import { replaceInFunction } from "../torture/planted/plant.ts";

const store = useOwnStore();
let billing: Billing;
let payer: Payer;
let violations: InvariantViolation[];
let unsubscribe: () => void;

beforeAll(async () => {
  billing = createTestBilling(store.database);
});
beforeEach(async () => {
  payer = await createPayer(store.database, 100n);
  violations = [];
  unsubscribe = onViolation((violation) => violations.push(violation));
});
afterEach(() => unsubscribe());

/** The call fails with `internal`, and the violation is reported once. */
async function expectViolation(call: Promise<unknown>, invariant: string): Promise<void> {
  await expect(call).rejects.toMatchObject({ reason: "internal", invariant });
  expect(violations.map((violation) => violation.invariant)).toEqual([invariant]);
}

const HOLDS = "v_results := place_holds(p_server_id, p_holds, v_plans);";
const ENDS = "v_results := post_entries(p_ends, v_plans);";
const HOLD_OUTCOME = "a hold has an outcome that its request allows";
const END_OUTCOME = "an ending has an outcome that its request allows";
const HELD = "an account holds at least 0 and at most its balance";

/** Changes the results of vx.bill until the returned function is called. */
async function plantInBill(results: string, change: string): Promise<() => Promise<unknown>> {
  const changed = `${results}
    DECLARE
      v_result item_result;
      v_changed item_result[];
    BEGIN
      FOREACH v_result IN ARRAY v_results LOOP
        ${change}
        v_changed := array_append(v_changed, v_result);
      END LOOP;
      v_results := v_changed;
    END;`;
  await replaceInFunction(store.owner, "bill", { find: results, put: changed });
  return () => replaceInFunction(store.owner, "bill", { find: changed, put: results });
}

/** An id in the lane after the payer's. */
function strangerOf({ accountId }: Payer, newId: (lane: number) => string): string {
  return newId((laneOfId(accountId) + 1) % 1_024);
}

describe("a hold is not sent", () => {
  const [amount, lane] = ["the amount of a hold is an int64 of at least 0", "hold and key are in the account's lane"];
  const cases: [string, () => Partial<HoldRequest>, string][] = [
    ["below 0", () => ({ amountMicros: -1n }), amount],
    ["above int64", () => ({ amountMicros: 2n ** 63n }), amount],
    ["with an id in another lane", () => ({ generationId: strangerOf(payer, typeIds.generation) }), lane],
    ["of a key in another lane", () => ({ keyId: strangerOf(payer, typeIds.key) }), lane],
  ];
  test.each(cases)("%s", async (_, change, invariant) => {
    const hold = holdOf(payer, 60n);
    await expectViolation(billing.hold({ ...hold, ...change() }), invariant);
    expect(await store.owner`SELECT FROM vx.holds`).toHaveLength(0);
  });

  test("a second time", async () => {
    const id = await placeHold(billing, payer, 10n);
    await expectViolation(billing.hold(holdOf(payer, 10n, id)), "a hold is placed once");
    await billing.end(endOf(payer, id, undefined));
  });
});

describe("an ending is not sent", () => {
  const charge = (change: () => Partial<Charge>) => (end: EndRequest) => ({
    ...end,
    charge: { ...(end.charge as Charge), ...change() },
  });
  const [bounds, cost] = ["a charge is at least 0 and at most its hold", "a charge is the cost of its usage"];
  const negative = { amountMicros: 0n, usage: { ...NO_USAGE, input: 1, output: -1 } };
  const hold = (generationId: () => string) => (end: EndRequest) => ({ ...end, generationId: generationId() });
  const cases: [string, (end: EndRequest) => EndRequest, string][] = [
    ["for a hold in another lane", hold(() => strangerOf(payer, typeIds.generation)), "a hold is in the account's lane"],
    [
      "for a key in another lane",
      charge(() => ({ keyId: strangerOf(payer, typeIds.key) })),
      "the key of a charge is in the account's lane",
    ],
    ["with a charge for a hold of another process", hold(() => newGenerationId(payer)), "only an open hold is charged"],
    ["with more than the hold", ({ generationId }) => endOf(payer, generationId, 61n), bounds],
    ["with a negative charge", charge(() => ({ amountMicros: -1n })), bounds],
    ["with another amount than the usage costs", charge(() => ({ amountMicros: 11n })), cost],
    ["with negative usage", charge(() => negative), cost],
  ];
  test.each(cases)("%s", async (_, change, invariant) => {
    const id = await placeHold(billing, payer, 60n);
    await expectViolation(billing.end(change(endOf(payer, id, 10n))), invariant);
    expect(await billing.end(endOf(payer, id, undefined))).toEqual({ outcome: "released" });
  });

  test("with a second charge, but the same one is sent again", async () => {
    const id = await placeHold(billing, payer, 60n);
    const end = endOf(payer, id, 10n);
    const { owner } = store;
    await owner`ALTER FUNCTION vx.bill RENAME TO renamed`;
    await expect(billing.end(end)).rejects.toMatchObject({ reason: "internal" });
    await owner`ALTER FUNCTION vx.renamed RENAME TO bill`;
    expect(violations).toEqual([]);
    await expectViolation(billing.end(endOf(payer, id, 10n)), "a hold is charged once");
    expect(await billing.end(end)).toMatchObject({ outcome: "settled" });
  });

  test("twice in one batch", async () => {
    const lane = laneOfId(payer.accountId);
    const item: BillItem = { kind: "hold", lane, hold: holdOf(payer, 1n) };
    const sent = bill(store.database, { serverId: "one", clock }, [item, { ...item }]);
    await expectViolation(sent, "a batch places and charges a hold once");
  });
});

describe("a result is not accepted", () => {
  /** What changes a result of vx.bill, and whether a hold, an ending or a release gets it. */
  const cases: [string, "hold" | "end" | "release", string, string][] = [
    ["that is missing", "hold", "CONTINUE;", "every item of a batch has a result"],
    ["for an item that was not sent", "hold", "v_result.n := 2;", "a result belongs to one item of the batch"],
    ["with an unknown outcome", "hold", "v_result.outcome := 'lent';", HOLD_OUTCOME],
    ["of a retry for a call without an idempotency key", "hold", "v_result.outcome := 'answered';", HOLD_OUTCOME],
    ["with a negative amount held", "hold", "v_result.held_micros := -1;", HELD],
    ["with more held than the balance", "hold", "v_result.held_micros := v_result.balance_micros + 1;", HELD],
    [
      "for a hold that was placed but does not fit",
      "hold",
      "v_result.held_micros := v_result.balance_micros - 59;",
      "a hold that is placed fits the free balance",
    ],
    ["insufficient for a hold that fits", "hold", "v_result.outcome := 'insufficient';", "a hold that fits is not insufficient"],
    ["with an unknown ending", "end", "v_result.outcome := 'lost';", END_OUTCOME],
    ["without the charge", "end", "v_result.amount_micros := NULL;", END_OUTCOME],
    ["with a charge for a release", "release", "v_result.amount_micros := -1;", END_OUTCOME],
    ["with another charge", "end", "v_result.amount_micros := -11;", "the database charges the requested amount"],
    ["with a negative balance", "end", "v_result.balance_micros := -1;", "a charge leaves a balance of at least 0"],
  ];
  test.each(cases)("%s (%s)", async (_, kind, change, invariant) => {
    const id = newGenerationId(payer);
    if (kind !== "hold") await billing.hold(holdOf(payer, 60n, id));
    const restore = await plantInBill(kind === "hold" ? HOLDS : ENDS, change);
    const sent =
      kind === "hold" ? billing.hold(holdOf(payer, 60n, id)) : billing.end(endOf(payer, id, kind === "end" ? 10n : undefined));
    await expectViolation(sent, invariant);
    await restore();
  });

  test("of an earlier attempt with another charge", async () => {
    const id = await placeHold(billing, payer, 60n);
    const end = endOf(payer, id, 10n);
    const find = "v_amount := greatest(r.amount, -r.held);";
    const put = "v_amount := r.amount - 1;";
    await replaceInFunction(store.owner, "post_entries", { find, put });
    await expectViolation(billing.end(end), "the database charges the requested amount");
    await replaceInFunction(store.owner, "post_entries", { find: put, put: find });
    violations.length = 0;
    await expectViolation(billing.end(end), "the database charges the requested amount");
  });

  test("fails only its item: the other items of the batch get their results", async () => {
    const other = await createPayer(store.database, 1n);
    const restore = await plantInBill(HOLDS, "IF v_result.balance_micros = 1 THEN v_result.balance_micros := -1; END IF;");
    const outcomes = await Promise.allSettled([payer, other].map((one) => billing.hold(holdOf(one, 1n))));
    await restore();
    expect(outcomes).toMatchObject([
      { value: { outcome: "held" } },
      { reason: { invariant: "an account holds at least 0 and at most its balance" } },
    ]);
  });
});
