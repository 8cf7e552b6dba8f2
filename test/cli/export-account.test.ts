import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN, useTestApp } from "../support/app.ts";
import { parseCsv } from "../support/csv.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { vx } from "./support.ts";

const app = useTestApp();
const operator = useOperator(app);
const folder = mkdtempSync(join(tmpdir(), "vx-export-test-"));
let key: TestKey;
let webhookSecret = "";

const run = (...args: string[]) =>
  vx(["accounts", "export", key.accountId, ...args], {
    VX_ADMIN_URL: app.adminUrl,
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
  });

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
afterAll(() => rmSync(folder, { recursive: true }));

/** The files of an archive, unpacked by the tar of the system. */
function unpack(file: string): Map<string, string> {
  const into = mkdtempSync(join(folder, "unpacked-"));
  execFileSync("tar", ["-xzf", file, "-C", into]);
  return new Map(readdirSync(into).map((name) => [name, readFileSync(join(into, name), "utf8")]));
}

const linesOf = (text = "") =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("export writes everything stored about an account, without secrets, into an archive that tar unpacks", async () => {
  const output = join(folder, "acme.tar.gz");
  expect(await run("--output", output)).toEqual({ code: 0, stdout: `${output}\n`, stderr: "" });
  expect(statSync(output).mode & 0o777).toBe(0o600);
  const files = unpack(output);
  expect([...files.keys()].sort()).toEqual([
    "README.txt",
    "account.json",
    "deliveries.jsonl",
    "events.jsonl",
    "keys.jsonl",
    "ledger.csv",
    "ledger.jsonl",
    "limits.jsonl",
    "log.jsonl",
    "statements.jsonl",
    "usage.csv",
    "webhooks.jsonl",
  ]);
  expect(JSON.parse(files.get("account.json") ?? "")).toMatchObject({
    id: key.accountId,
    email: "ada@example.com",
  });
  const entries = linesOf(files.get("ledger.jsonl"));
  expect(entries.map(({ kind, user }) => [kind, user])).toEqual([
    ["generation", "bob"],
    ["generation", "ada"],
    ["credit", ""],
  ]);
  expect(parseCsv(files.get("ledger.csv") ?? "").rows).toHaveLength(3);
  const usage = parseCsv(files.get("usage.csv") ?? "").rows;
  expect(usage.map(({ user }) => user).sort()).toEqual(["ada", "bob"]);
  expect(linesOf(files.get("statements.jsonl")).at(-1)).toMatchObject({
    closing_balance_micros: entries[0].balance_after_micros,
  });
  const all = [...files.values()].join("\n");
  for (const secret of [key.secret, webhookSecret, OPERATOR_TOKEN]) expect(all).not.toContain(secret);
  expect(await run("--output", output)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/already exists/),
  });
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
  expect(await run("--output", join(folder, "hint.tar.gz"))).toMatchObject({ code: 0, stderr: hint });
  const line = (id: string, seq: number) =>
    `${JSON.stringify({ account_id: id, seq, reason: key.accountId, upstream: "secret", upstream_cost_micros: 1 })}\n`;
  const archived = [line(key.accountId, 1), line("acct_other", 1), line(key.accountId, 2)];
  writeFileSync(join(folder, "ledger-2030-01.jsonl.zst"), zstdCompressSync(archived.join("")));
  const output = join(folder, "long.tar.gz");
  expect(await run("--output", output, "--archives", folder)).toMatchObject({ code: 0, stderr: "" });
  const files = unpack(output);
  const seqs = linesOf(files.get("ledger.jsonl")).map(({ seq }) => seq);
  expect(seqs).toEqual(Array.from({ length: 1_101 }, (_, i) => 1_110 - i));
  expect(linesOf(files.get("archived-ledger.jsonl"))).toEqual(
    [1, 2].map((seq) => ({ account_id: key.accountId, seq, reason: key.accountId })),
  );
});

test("the name of the file and the id of the account are printed as JSON", async () => {
  const output = join(folder, "json.tar.gz");
  const { code, stdout } = await run("--output", output, "--json");
  expect([code, JSON.parse(stdout)]).toEqual([0, { account_id: key.accountId, file: output }]);
});
