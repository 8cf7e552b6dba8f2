import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { LedgerService, type ListEntriesRequestSchema } from "../../gen/vx/v1/ledger_pb.js";
import { post, sendAnyJson } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

async function accountWithCredits(count: number) {
  const key = await createTestKey(operator);
  for (let i = 1; i <= count; i++) await credit(key.accountId, i);
  return key;
}

const credit = (accountId: string, n: number) =>
  operator.creditAccount({ accountId, amountMicros: BigInt(n), reason: `invoice ${n}`, idempotencyKey: `${n}` });

async function list(secret: string, request: { pageSize?: number; pageToken?: string } = {}) {
  const message = messageOf(await call(LedgerService.method.listEntries, request, secret));
  return { seqs: message.entries.map(({ seq }) => Number(seq)), ...message };
}

test("every change of the balance has an entry with amount, balance and reason, newest first", async () => {
  const { secret, accountId } = await createTestKey(operator);
  const startedAt = Date.now();
  const move = { accountId, reason: "invoice 1001", idempotencyKey: "a" };
  await operator.creditAccount({ ...move, amountMicros: 25_000_000n });
  await operator.adjustAccount({ accountId, amountMicros: -1n, reason: "rounding — ½ µ$", idempotencyKey: "b" });
  const { entries } = await list(secret);
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
  const first = await list(secret, { pageSize: 2 });
  await credit(accountId, 6);
  const second = await list(secret, { pageSize: 2, pageToken: first.nextPageToken });
  const third = await list(secret, { pageSize: 2, pageToken: second.nextPageToken });
  expect([first.seqs, second.seqs, third.seqs]).toEqual([[5, 4], [3, 2], [1]]);
  expect(third.nextPageToken).toBe("");
});

describe("one generation", () => {
  const read = (secret: string, id: string) => sendAnyJson(app.url, { verb: "GET", path: `/v1/generations/${id}`, secret });
  const model = "vx-sandbox-small";
  const messages = [{ role: "user", content: "[[reasoning=5]] hi" }];

  test.each([
    { path: "/v1/generate", request: { model, messages, user: "ada" }, prefix: "gen_" },
    { path: "/v1/chat/completions", request: { model, messages, user: "ada" }, prefix: "" },
    { path: "/v1/responses", request: { model, input: "hi", user: "ada" }, prefix: "resp_" },
    { path: "/v1/messages", request: { model, messages, max_tokens: 50, metadata: { user_id: "ada" } }, prefix: "msg_" },
  ])("is found by the id that $path returned, by its account only", async ({ path, request, prefix }) => {
    const { secret, accountId } = await createTestKey(operator);
    await operator.creditAccount({ accountId, amountMicros: 1_000_000n, reason: "x", idempotencyKey: "x" });
    const { id } = (await post(app, { secret }, path, request)).json;
    expect(id.startsWith(prefix)).toBe(true);
    const { status, body } = await read(secret, id);
    const [charge, credited] = (await operator.listLedgerEntries({ accountId })).entries;
    expect(status).toBe(200);
    expect(body.entry).toMatchObject({
      id: charge?.id,
      kind: "generation",
      generation_id: charge?.generationId,
      amount_micros: Number(charge?.amountMicros),
      user: "ada",
      price_version: 1,
      prices: { input: 250_000, output: 1_250_000 },
    });
    const { secret: other } = await createTestKey(operator);
    for (const [caller, unknown] of [
      [other, id],
      [secret, charge?.id ?? ""],
      [secret, (credited?.id ?? "").replace("led_", "gen_")],
      [secret, "gen_00000000000000000000000000"],
      [secret, "gen_zzzzzzzzzzzzzzzzzzzzzzzzzz"],
      [secret, "gen_"],
    ] as const) {
      const refused = { status: 404, body: { error: { code: "not_found" } } };
      expect(await read(caller, unknown), unknown).toMatchObject(refused);
    }
  });
});

describe("filters", () => {
  const { listEntries } = LedgerService.method;

  test("select entries by kind, key, model and time, in pages", async () => {
    const { secret, accountId, id: keyId } = await createTestKey(operator);
    // Five days with a credit and three generations each, of which one has another key and another model.
    await app.database.owner`
      INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason,
        request_id, key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images,
        image_tokens, user_id, trace_id, created_at, hash_version, hash)
      SELECT vx.lane_of(${accountId}), ${accountId}, i + 1, 'led_' || i, 0,
        (CASE i % 4 WHEN 0 THEN 'credit' ELSE 'generation' END)::vx.entry_kind, 0, 0, 'x', '',
        CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN 'key_other' ELSE ${keyId} END,
        CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN 'other' ELSE 'model' END, 0, 0, 0, 0, 0, 0, 0, 0, '', '',
        timestamptz '2020-01-01Z' + (i / 4) * interval '1 day', 1, ''
      FROM generate_series(0, 19) i`;
    await app.database.owner`UPDATE vx.accounts SET last_seq = 20 WHERE id = ${accountId}`;
    const day = (n: number) => timestampFromDate(new Date(Date.UTC(2020, 0, n)));
    const list = async (filter: MessageInitShape<typeof ListEntriesRequestSchema>) => {
      const seqs: number[] = [];
      let pageToken = "";
      do {
        const page = await call(listEntries, { pageSize: 2, ...filter, pageToken }, secret);
        if (!page.ok) return page.fields;
        seqs.unshift(...page.message.entries.map(({ seq }) => Number(seq)).reverse());
        pageToken = page.message.nextPageToken;
      } while (pageToken !== "");
      return seqs;
    };
    expect(await list({ kind: "credit" })).toEqual([1, 5, 9, 13, 17]);
    expect(await list({ kind: "adjustment" })).toEqual([]);
    expect(await list({ kind: "generation", from: day(5) })).toEqual([18, 19, 20]);
    expect(await list({ keyId: "key_other" })).toEqual([2, 6, 10, 14, 18]);
    expect(await list({ keyId, model: "model", to: day(2) })).toEqual([3, 4]);
    expect(await list({ keyId, model: "other" })).toEqual([]);
    expect(await list({ from: day(2), to: day(3) })).toEqual([5, 6, 7, 8]);
    expect(await list({ from: day(2), to: day(2) })).toEqual([]);
    expect(await list({ from: day(6) })).toEqual([]);
    expect(await list({ to: day(1) })).toEqual([]);
    expect(await list({ kind: "gift" })).toEqual(["kind"]);
    const path = "/v1/ledger?kind=credit&from=2020-01-04T00:00:00Z&page_size=1";
    const { body } = await sendAnyJson(app.url, { verb: "GET", path, secret });
    expect(body.entries).toMatchObject([{ seq: 17 }]);
    const { entries } = await operator.listLedgerEntries({ accountId, model: "other", from: day(5) });
    expect(entries.map(({ seq }) => seq)).toEqual([18n]);
  });
});
