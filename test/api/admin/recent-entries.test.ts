import { beforeAll, expect, test } from "vitest";
import { useOwnApp } from "../../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../../support/fixtures.ts";
import { bearer } from "../../support/protocols.ts";

const keys: TestKey[] = [];

const app = useOwnApp();
const operator = useOperator(app);
beforeAll(async () => {
  for (const name of ["one", "two", "three"]) {
    const key = await createTestKey(operator, { name });
    await operator.updateAccount({ accountId: key.accountId, name: `account ${name}`, reason: "test" });
    keys.push(key);
  }
});

async function credit({ accountId }: TestKey, reason: string): Promise<void> {
  await operator.creditAccount({
    accountId,
    amountMicros: 1_000_000n,
    reason,
    idempotencyKey: reason.replace(" ", "-"),
  });
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
  for (const [index, name] of ["one", "two", "one", "three", "two", "one", "one", "one"].entries()) {
    const key = keys[["one", "two", "three"].indexOf(name)];
    if (key) await credit(key, `credit ${index}`);
    expected.unshift(`account ${name}: credit ${index}`);
  }
  for (const pageSize of [1, 2, 3, 5, 100]) expect(await recent(pageSize)).toEqual(expected);
});

test("a generation has the names of its account and its key", async () => {
  const [, , key] = keys;
  const response = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(key?.secret ?? ""), "content-type": "application/json" },
    body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: "Hello" }] }),
  });
  expect(response.status).toBe(200);
  const { entries } = await operator.listRecentEntries({ pageSize: 1 });
  expect(entries).toMatchObject([
    {
      accountId: key?.accountId,
      accountName: "account three",
      keyName: "three",
      entry: { kind: "generation", model: "vx-sandbox-small", keyId: key?.id },
    },
  ]);
});

test("entries of earlier months are found, those of more than a year ago are not", async () => {
  const [key] = keys;
  const idOf = (months: number, text: string) => {
    const time = new Date();
    const ms = Date.UTC(time.getUTCFullYear(), time.getUTCMonth() - months, 15);
    return `led_${Array.from({ length: 10 }, (_, at) => "0123456789abcdefghjkmnpqrstvwxyz"[Math.floor(ms / 32 ** (9 - at)) % 32]).join("")}${text}`;
  };
  for (const [seq, months] of [
    [1_000, 11],
    [1_001, 14],
  ] as const) {
    const id = idOf(months, "0000000000000000");
    const month = (new Date().getUTCFullYear() - 1970) * 12 + new Date().getUTCMonth() - months;
    await app.database.owner`
      INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id,
        key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id,
        trace_id, created_at, hash_version, hash)
      SELECT vx.lane_of(${key?.accountId ?? ""}), ${key?.accountId ?? ""}, ${seq}, ${id}, ${month}, 'credit', 1, 1,
        ${`${months} months`}, '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, '', '', now(), 1, ''`;
  }
  const found = await recent(4);
  expect(found.at(-1)).toBe("account one: 11 months");
  expect(found).not.toContain("account one: 14 months");
});

test("an entry of any account is found by its id and by that of its generation", async () => {
  const [key] = keys;
  if (key) await credit(key, "found again");
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
