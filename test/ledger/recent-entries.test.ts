import { beforeAll, expect, test } from "vitest";
import { createIds } from "../../src/domain/ids.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { sendJson } from "../rest/send-json.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { started } from "../support/started.ts";

const app = useOwnApp();
const operator = useOperator(app);
const NAMES = ["one", "two", "three"] as const;
const keys = started(async () => {
  const created = { one: await createTestKey(operator, { name: "one" }), two: await createTestKey(operator, { name: "two" }) };
  return { ...created, three: await createTestKey(operator, { name: "three" }) };
});
beforeAll(async () => {
  for (const name of NAMES) await operator.updateAccount({ accountId: keys[name].accountId, name: `account ${name}` });
});

async function credit({ accountId }: TestKey, reason: string): Promise<void> {
  const idempotencyKey = reason.replace(" ", "-");
  await operator.creditAccount({ accountId, amountMicros: 1_000_000n, reason, idempotencyKey });
}

async function recent(pageSize: number): Promise<string[]> {
  const found: string[] = [];
  for (let pageToken = ""; ; ) {
    const page = await operator.listRecentEntries({ pageSize, pageToken });
    found.push(...page.entries.map(({ accountName, entry }) => `${accountName}: ${entry?.reason}`));
    if (page.nextPageToken === "") return found;
    pageToken = page.nextPageToken;
  }
}

test("the entries of all accounts are listed newest first, on pages of any size", async () => {
  expect(await recent(10)).toEqual([]);
  const expected: string[] = [];
  for (const [index, at] of [0, 1, 0, 2, 1, 0, 0, 0].entries()) {
    const name = NAMES[at] ?? "one";
    await credit(keys[name], `credit ${index}`);
    expected.unshift(`account ${name}: credit ${index}`);
  }
  for (const pageSize of [1, 2, 3, 5, 100]) expect(await recent(pageSize)).toEqual(expected);
});

test("a generation has the names of its account and its key", async () => {
  const { three: key } = keys;
  const body = { model: "vx-sandbox-small", messages: [{ role: "user", content: "Hello" }] };
  const answer = await sendJson(app.url, { verb: "POST", path: "/v1/generate", secret: key.secret, body });
  expect(answer.status).toBe(200);
  const { entries } = await operator.listRecentEntries({ pageSize: 1 });
  const entry = { kind: "generation", model: "vx-sandbox-small", keyId: key.id };
  expect(entries).toMatchObject([{ accountId: key.accountId, accountName: "account three", keyName: "three", entry }]);
});

test("entries of earlier months are found, those of more than a year ago are not", async () => {
  const { accountId } = keys.one;
  for (const [seq, months] of [
    [1_000, 11],
    [1_001, 14],
  ] as const) {
    const now = new Date();
    const id = createIds(() => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 15)).entry(laneOfId(accountId));
    const month = (now.getUTCFullYear() - 1970) * 12 + now.getUTCMonth() - months;
    await app.database.owner`
      INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id,
        key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id,
        trace_id, created_at, hash_version, hash)
      SELECT vx.lane_of(${accountId}), ${accountId}, ${seq}, ${id}, ${month}, 'credit', 1, 1,
        ${`${months} months`}, '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, '', '', now(), 1, ''`;
  }
  const found = await recent(4);
  expect(found.at(-1)).toBe("account one: 11 months");
  expect(found).not.toContain("account one: 14 months");
});

test("an entry of any account is found by its id and by that of its generation", async () => {
  await credit(keys.one, "found again");
  const { entries } = await operator.listRecentEntries({ pageSize: 1000 });
  const generation = entries.find(({ entry }) => entry?.kind === "generation")?.entry;
  const credited = entries.find(({ entry }) => entry?.reason === "found again")?.entry;
  const find = async (id: string) =>
    (await operator.listRecentEntries({ id })).entries.map(({ entry, accountName }) => [entry?.id, accountName]);
  expect(await find(generation?.generationId ?? "")).toEqual([[generation?.id, "account three"]]);
  expect(await find(generation?.id ?? "")).toEqual([[generation?.id, "account three"]]);
  expect(await find(credited?.id ?? "")).toEqual([[credited?.id, "account one"]]);
  expect(await find(`gen_${"0".repeat(26)}`)).toEqual([]);
  await expect(find("gen_1")).rejects.toThrow(/id/);
});
