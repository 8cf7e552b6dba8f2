import { timestampDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LedgerService } from "../../../gen/vx/v1/ledger_pb.js";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { createTestKey, type Operator, operatorOf } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

let app: TestApp;
let operator: Operator;

beforeAll(async () => {
  app = await startTestApp();
  operator = operatorOf(app);
});
afterAll(() => app.stop());

async function accountWithCredits(count: number) {
  const key = await createTestKey(operator);
  for (let i = 1; i <= count; i++) await credit(key.accountId, i);
  return key;
}

async function credit(accountId: string, n: number) {
  await operator.creditAccount({
    accountId,
    amountMicros: BigInt(n),
    reason: `invoice ${n}`,
    idempotencyKey: `credit ${n}`.replace(" ", "-"),
  });
}

describe.each(protocols)("$name", ({ open }) => {
  const lister = (secret: string) => {
    const caller = open(app.url);
    return {
      list: async (request: { pageSize?: number; pageToken?: string } = {}) => {
        const outcome = await caller.call(LedgerService.method.listEntries, request, bearer(secret));
        if (!outcome.ok) throw new Error(outcome.text);
        return { seqs: outcome.message.entries.map(({ seq }) => Number(seq)), ...outcome.message };
      },
      close: () => caller.close(),
    };
  };

  test("a new account has an empty ledger", async () => {
    const { secret } = await createTestKey(operator);
    const { list, close } = lister(secret);
    expect(await list()).toMatchObject({ entries: [], nextPageToken: "" });
    close();
  });

  test("every change of the balance has an entry with amount, balance and reason, newest first", async () => {
    const { secret, accountId } = await createTestKey(operator);
    const startedAt = Date.now();
    const move = { accountId, reason: "invoice 1001", idempotencyKey: "a" };
    await operator.creditAccount({ ...move, amountMicros: 25_000_000n });
    await operator.adjustAccount({
      accountId,
      amountMicros: -1n,
      reason: "rounding — ½ µ$",
      idempotencyKey: "b",
    });
    const { list, close } = lister(secret);
    const { entries } = await list();
    close();
    const none = { requestId: "", keyId: "", model: "", inputTokens: 0n, outputTokens: 0n };
    expect(entries).toMatchObject([
      {
        id: expect.stringMatching(/^led_[0-9a-z]{26}$/),
        seq: 2n,
        kind: "adjustment",
        amountMicros: -1n,
        amount: "-$0.000001",
        balanceAfterMicros: 24_999_999n,
        balanceAfter: "$24.999999",
        reason: "rounding — ½ µ$",
        ...none,
      },
      {
        seq: 1n,
        kind: "credit",
        amountMicros: 25_000_000n,
        amount: "$25.00",
        balanceAfterMicros: 25_000_000n,
        balanceAfter: "$25.00",
        reason: "invoice 1001",
        ...none,
      },
    ]);
    for (const { createdAt } of entries) {
      const time = createdAt ? timestampDate(createdAt).getTime() : 0;
      expect(time).toBeGreaterThanOrEqual(startedAt - 1);
      expect(time).toBeLessThanOrEqual(Date.now() + 1);
    }
  });

  test("pages have no gap and no overlap while entries are added", async () => {
    const { secret, accountId } = await accountWithCredits(5);
    const { list, close } = lister(secret);
    const first = await list({ pageSize: 2 });
    await credit(accountId, 6);
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
    const third = await list({ pageSize: 2, pageToken: second.nextPageToken });
    close();
    expect([first.seqs, second.seqs, third.seqs]).toEqual([[5, 4], [3, 2], [1]]);
    expect(third.nextPageToken).toBe("");
  });

  test("the default page_size is 50", async () => {
    const { secret } = await accountWithCredits(51);
    const { list, close } = lister(secret);
    const { entries, nextPageToken } = await list();
    expect(entries).toHaveLength(50);
    expect((await list({ pageToken: nextPageToken })).seqs).toEqual([1]);
    close();
  });

  test("entries of other accounts are not returned", async () => {
    await accountWithCredits(1);
    const { secret } = await accountWithCredits(2);
    const { list, close } = lister(secret);
    expect((await list()).seqs).toEqual([2, 1]);
    close();
  });
});
