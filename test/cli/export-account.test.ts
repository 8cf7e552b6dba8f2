import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN, useTestApp } from "../support/app.ts";
import { parseCsv } from "../support/csv.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { envOf, refused, vx } from "./support.ts";

const app = useTestApp();
const operator = useOperator(app);
const folder = createTemporaryFolder("export");
afterAll(folder.remove);
const inFolder = (name: string) => join(folder.path, name);
let key: TestKey;
let webhookSecret = "";

const run = (...args: string[]) => vx(["accounts", "export", key.accountId, ...args], envOf(app));

const send = async (path: string, body: unknown) =>
  (await sendJson(app.url, { verb: "POST", path, secret: key.secret, body })).body as Record<string, string>;

beforeAll(async () => {
  key = await createTestKey(operator, { scopes: ["generate", "read", "keys", "webhooks"] });
  const { accountId } = key;
  await operator.updateAccount({ accountId, email: "ada@example.com" });
  webhookSecret = (await send("/v1/webhooks", { url: "https://hooks.example/" })).secret ?? "";
  // Its event is delivered to the webhook.
  await operator.creditAccount({ accountId, amountMicros: 1_000_000n, reason: "x", idempotencyKey: "1" });
  const messages = [{ role: "user", content: "Hello" }];
  for (const user of ["ada", "bob"]) await send("/v1/generate", { model: "vx-sandbox-small", messages, max_tokens: 5, user });
  const limit = { metric: "cost", window: "day", amount: 1_000_000n };
  await operator.setLimit({ owner: { case: "accountId", value: accountId }, limit });
});

/** The files of an archive, unpacked by the tar of the system. */
function unpack(file: string): Map<string, string> {
  const into = mkdtempSync(inFolder("unpacked-"));
  execFileSync("tar", ["-xzf", file, "-C", into]);
  return new Map(readdirSync(into).map((name) => [name, readFileSync(join(into, name), "utf8")]));
}

const linesOf = (text = "") =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("export writes everything stored about an account, without secrets, into an archive that tar unpacks", async () => {
  const output = inFolder("acme.tar.gz");
  expect(await run("--output", output)).toEqual({ code: 0, stdout: `${output}\n`, stderr: "" });
  expect(statSync(output).mode & 0o777).toBe(0o600);
  const files = unpack(output);
  const lists = ["deliveries", "events", "keys", "ledger", "limits", "log", "statements", "webhooks"];
  const names = ["README.txt", "account.json", "ledger.csv", "usage.csv", ...lists.map((name) => `${name}.jsonl`)];
  expect([...files.keys()].sort()).toEqual(names.sort());
  expect(JSON.parse(files.get("account.json") ?? "")).toMatchObject({ id: key.accountId, email: "ada@example.com" });
  const entries = linesOf(files.get("ledger.jsonl"));
  expect(entries.map(({ kind, user }) => [kind, user])).toEqual([
    ["generation", "bob"],
    ["generation", "ada"],
    ["credit", ""],
  ]);
  expect(parseCsv(files.get("ledger.csv") ?? "").rows).toHaveLength(3);
  const usage = parseCsv(files.get("usage.csv") ?? "").rows;
  expect(usage.map(({ user }) => user).sort()).toEqual(["ada", "bob"]);
  const statement = { closing_balance_micros: entries[0].balance_after_micros };
  expect(linesOf(files.get("statements.jsonl")).at(-1)).toMatchObject(statement);
  const all = [...files.values()].join("\n");
  for (const secret of [key.secret, webhookSecret, OPERATOR_TOKEN]) expect(all).not.toContain(secret);
  refused(await run("--output", output), /already exists/);
});

test("an export has all pages of a long ledger, and the archived entries of the account alone", async () => {
  const { owner } = app.database;
  await owner`
    INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason,
      request_id, key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images,
      image_tokens, user_id, trace_id, created_at, hash_version, hash)
    SELECT vx.lane_of(${key.accountId}), ${key.accountId}, i, 'led_' || i, 0, 'credit', 0, 0, 'x', '', '', '', 0, 0, 0, 0, 0,
      0, 0, 0, '', '', clock_timestamp(), 1, '' FROM generate_series(10, 1110) i`;
  await owner`UPDATE vx.accounts SET last_seq = 1110 WHERE id = ${key.accountId}`;
  await owner`DELETE FROM vx.ledger WHERE account_id = ${key.accountId} AND seq < 10`;
  const hint = "Entries 1 to 9 are archived: --archives FOLDER adds them.\n";
  expect(await run("--output", inFolder("hint.tar.gz"))).toMatchObject({ code: 0, stderr: hint });
  const line = (id: string, seq: number) =>
    `${JSON.stringify({ account_id: id, seq, reason: key.accountId, upstream: "secret", upstream_cost_micros: 1 })}\n`;
  const archived = [line(key.accountId, 1), line("acct_other", 1), line(key.accountId, 2)];
  writeFileSync(inFolder("ledger-2030-01.jsonl.zst"), zstdCompressSync(archived.join("")));
  const output = inFolder("long.tar.gz");
  const { stdout, ...ended } = await run("--output", output, "--archives", folder.path, "--json");
  expect(ended).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({ account_id: key.accountId, file: output });
  const files = unpack(output);
  const seqs = linesOf(files.get("ledger.jsonl")).map(({ seq }) => seq);
  expect(seqs).toEqual(Array.from({ length: 1_101 }, (_, i) => 1_110 - i));
  expect(linesOf(files.get("archived-ledger.jsonl"))).toEqual(
    [1, 2].map((seq) => ({ account_id: key.accountId, seq, reason: key.accountId })),
  );
});
