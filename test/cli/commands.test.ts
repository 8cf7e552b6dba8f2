import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { sendJson } from "../rest/send-json.ts";
import { TEST_CALLER } from "../support/action.ts";
import { useOwnApp } from "../support/app.ts";
import { cleanEnv } from "../support/clean-env.ts";
import { useOperator } from "../support/fixtures.ts";
import { SERVER as VX } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { typeIds } from "../support/type-ids.ts";
import { envOf, refused, spawnVx, vx, words } from "./support.ts";

// What the server does is tested elsewhere: here, what a command sends of its arguments, and what it prints.

const server = useOwnApp();
const operator = useOperator(server);
const folder = createTemporaryFolder("commands");
afterAll(folder.remove);

const run = (line: string) => vx(words(line), envOf(server));

/** Runs a command that must succeed, and returns its response message. */
// biome-ignore lint/suspicious/noExplicitAny: the tests read messages of different types
async function json(line: string): Promise<any> {
  const { code, stdout, stderr } = await run(`${line} --json`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toHaveLength(2);
  return JSON.parse(stdout);
}

async function newAccount(): Promise<string> {
  const id = typeIds.account();
  await server.database.owner`SELECT vx.create_account(${TEST_CALLER}, vx.lane_of(${id}), ${id}, 'acme', 'pro')`;
  return id;
}

/** Returns the response to the creation of a key, with these options. */
const newKey = async (options = "") => await json(`keys create ${await newAccount()} --name ci ${options}`);

function temporaryFile(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

test.each([
  ["keys list", "The account has no keys."],
  ["ledger list", "The ledger of the account is empty."],
  ["failures list", "There are no such calls."],
  ["failures count", "There are no such calls."],
  ["prices account", "The account has the prices of the models."],
])("an empty list of %s prints a message on stderr", async (command, message) => {
  expect(await run(`${command} ${await newAccount()}`)).toEqual({ code: 0, stdout: "", stderr: `${message}\n` });
});

test.each([
  ["accounts get acct_nonesuch --json", /^vx: .*acct_nonesuch/],
  ["accounts create --name a\u001b[31mb --json", /^vx: .*\bname\b/],
  ["accounts list --json --page-token x", /^vx: page_token/],
  ["events list --type credit", /types: must be among balance\.low/],
])("an error of the server exits 1 in one line without control characters (%#)", async (line, message) => {
  const outcome = await run(line);
  refused(outcome, message);
  expect(outcome.stderr.trimEnd()).not.toMatch(/\p{Cc}/u);
});

describe("events", () => {
  test("list prints them newest first, of an account and of types, as a table and as JSON", async () => {
    const account = await newAccount();
    await json(`accounts credit ${account} 10.00 --reason 'invoice 1001'`);
    await json(`accounts suspend ${account} --reason overdue`);
    const { events } = await json(`events list --account ${account}`);
    expect(events).toMatchObject([
      { type: "account.suspended", seq: 2, account_id: account },
      { type: "credit.posted", seq: 1, data: { amount_micros: 10_000_000, reason: "invoice 1001" } },
    ]);
    const { stdout } = await run(`events list --account ${account} --type credit.posted`);
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^TIME +ACCOUNT +TYPE +ID +DATA$/),
      expect.stringContaining("amount_micros=10000000"),
      "",
    ]);
  });

  test("failures of an account are listed as a table and as JSON, filtered by their code, and counted", async () => {
    const account = await newAccount();
    const { secret } = await json(`keys create ${account} --name test`);
    const body = { model: "vx-sandbox-small", messages: [{ role: "user", content: "hi" }] };
    expect(await sendJson(server.url, { verb: "POST", path: "/v1/generate", secret, body })).toMatchObject({ status: 402 });
    const list = () => json(`failures list --account ${account} --code insufficient_balance`);
    await expect.poll(list, { timeout: 30_000 }).toMatchObject({ failures: [{ status: 402 }] });
    const { stdout } = await run(`failures list ${account} --model vx-sandbox-small`);
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^TIME +STATUS +CODE +METHOD +MODEL +KEY +MS +REQUEST ID +MESSAGE$/),
      expect.stringMatching(/ 402 +insufficient_balance +POST \/v1\/generate +vx-sandbox-small .* Top up the account/),
      "",
    ]);
    for (const filter of ["list --code upstream_error", "count --model other"])
      expect((await run(`failures ${filter} --account ${account}`)).stderr).toBe("There are no such calls.\n");
    const counted = await run(`failures count ${account} --from 2026-01-01 --by month`);
    expect(counted.stdout).toMatch(/^START +CODE +CALLS\n\S+ +insufficient_balance +1\n$/);
    expect(counted.stderr).toMatch(/^Calls are counted from 2026-01-01T00:00:00Z on\.\n$/);
  });

  test("watch prints only new events, each once, until its output is closed", async () => {
    const accountId = await newAccount();
    const reason = "overdue";
    await operator.suspendAccount({ accountId, reason });
    let isWatched = true;
    // The first events may come before the watcher knows which one is the last.
    const changes = (async () => {
      for (; isWatched; await pause(20)) {
        await operator.resumeAccount({ accountId });
        await operator.suspendAccount({ accountId, reason });
      }
    })();
    const seqs: number[] = [];
    const ended = await vx(words(`events watch --account ${accountId} --json`), envOf(server), {
      accepts: (text) => {
        for (const line of text.trimEnd().split("\n")) seqs.push(JSON.parse(line).seq);
        return seqs.length < 4;
      },
    });
    isWatched = false;
    await changes;
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(seqs).toEqual(seqs.map((_, i) => (seqs[0] ?? 0) + i));
    expect(seqs[0]).toBeGreaterThan(1);
  });
});

describe("accounts", () => {
  test("create prints the response message with every field", async () => {
    const { account } = await json("accounts create --name acme --plan pro");
    expect(account).toEqual({
      ...{ id: expect.stringMatching(/^acct_/), name: "acme", plan: "pro", state: "active" },
      ...{ balance_micros: 0, balance: "$0.00", held_micros: 0, owed_micros: 0, low_balance_micros: null, grants: [] },
      ...{ created_at: expect.stringMatching(/^\d{4}-.*Z$/), suspended_at: null, closed_at: null },
      ...{ external_id: "", email: "", notes: "", spent_today_micros: 0, spent_month_micros: 0 },
    });
    expect(await json(`accounts get ${account.id}`)).toEqual({ account });
  });

  test("a table has a header, and amounts are right-aligned", async () => {
    const account = await newAccount();
    await json(`accounts credit ${account} 1234.5 --reason 'invoice 1001'`);
    const [header = "", row = "", rest] = (await run(`accounts get ${account}`)).stdout.split("\n");
    expect(header).toMatch(/^ID +NAME +STATE +PLAN +BALANCE +HELD +CREATED$/);
    expect(row).toContain("$1234.50");
    expect(row.indexOf("$1234.50") + "$1234.50".length).toBe(header.indexOf("BALANCE") + "BALANCE".length);
    expect(rest).toBe("");
  });

  test("credit and adjust move the exact amount, once per idempotency key", async () => {
    const account = await newAccount();
    const once = `accounts credit ${account} 25.00 --reason 'invoice 1001' --idempotency-key i1001`;
    const first = await json(once);
    expect(first.entry).toMatchObject({ kind: "credit", amount_micros: 25_000_000, reason: "invoice 1001" });
    expect(await json(once)).toEqual(first);
    const second = await json(`accounts credit ${account} 0.000001 --reason 'a second one'`);
    expect(second.account.balance).toBe("$25.000001");
    const { stdout } = await run(`accounts adjust ${account} -5.00 --reason 'credited twice'`);
    expect(stdout).toMatch(/adjustment +-\$5\.00 +acct_\S+ +\$20\.000001 +credited twice\n$/);
    const after = await json(`accounts adjust --reason 'before the amount' ${account} -5`);
    expect(after.account.balance_micros).toBe(15_000_001);
  });

  test("a credit expires at the end of a day in UTC", async () => {
    const account = await newAccount();
    await json(`accounts credit ${account} 5.00 --reason welcome --expires 2099-01-31 --promotional`);
    const { stdout } = await run(`log --account ${account} --method CreditAccount`);
    expect(stdout).toContain("expires_at=2099-02-01T00:00:00.000Z promotional=true");
  });

  test("an account is named by its id or its external id, and by its unique name where nothing changes", async () => {
    const create = "accounts create --name globex --external-id crm-17 --email ops@globex.example --notes 'calls on Mondays'";
    const { account } = await json(create);
    expect(account).toMatchObject({ external_id: "crm-17", email: "ops@globex.example", notes: "calls on Mondays" });
    for (const reference of [account.id, "crm-17"]) expect(await json(`accounts get ${reference}`)).toEqual({ account });
    const found = `The account is ${account.id}.\n`;
    const named = await run("accounts get globex --json");
    expect({ ...named, stdout: JSON.parse(named.stdout) }).toEqual({ code: 0, stdout: { account }, stderr: found });
    refused(await run("accounts credit globex 5 --reason x"), /^vx: .* does not accept the name of an account/);
    expect(await run("usage export --account globex")).toMatchObject({ code: 0, stderr: found });
    expect((await json("keys create --account crm-17 --name ci")).api_key.name).toBe("ci");
    expect((await json("keys list crm-17")).api_keys).toHaveLength(1);
    expect((await json("accounts search GLOB")).accounts).toMatchObject([{ id: account.id }]);
    expect((await json("accounts rename crm-17 globex-europe")).account.name).toBe("globex-europe");
    expect((await json("accounts update crm-17 --email ''")).account).toMatchObject({ email: "", notes: account.notes });
    expect((await json("accounts set-plan crm-17 scale")).account.plan).toBe("scale");
    const suspended = await json("accounts suspend crm-17 --reason overdue");
    expect(suspended.account).toMatchObject({ state: "suspended", suspended_at: expect.any(String) });
    expect((await json("accounts resume crm-17")).account.state).toBe("active");
    const { events } = await json("log --account crm-17 --limit 2");
    expect(events).toMatchObject([{ method: "ResumeAccount" }, { method: "SuspendAccount", reason: "overdue" }]);
    expect(await run("accounts search nonesuch")).toMatchObject({ stderr: "No account matches.\n" });
  });

  test("close takes the balance and ends the account for good, by its external id", async () => {
    const { account } = await json("accounts create --name acme --external-id leaving");
    await json("accounts credit leaving 5 --reason 'invoice 1003'");
    await json("keys create --account leaving --name ci");
    const close = (more: string) => run(`accounts close leaving --reason 'the customer left' ${more}`);
    refused(await close(""), /^vx: balance: must say whether the balance of \$5\.00 is written off or was refunded/);
    expect((await close("--dry-run")).stdout).toMatch(/keys revoked: 1\n.*\n.*\n.*none\n +balance: \$5\.00\n$/);
    expect((await json("accounts get leaving")).account.state).toBe("active");
    expect((await close("--refunded")).stdout).toMatch(/ closed .*\n +ledger entry of the balance: led_\w+ -\$5\.00\n$/s);
    expect((await json(`accounts get ${account.id}`)).account.state).toBe("closed");
  });
});

describe("models", () => {
  test("list prints the response message, with upstreams, and the prices as amounts", async () => {
    const { models, next_page_token } = await json("models list");
    expect([models.length, next_page_token]).toEqual([3, ""]);
    expect(models[2]).toMatchObject({
      ...{ id: "vx-sandbox-small", context_window: 8_192, max_output_tokens: 4_096, aliases: [] },
      prices: { input: 250_000, output: 1_250_000, image: 0, tiers: [] },
      upstreams: [{ kind: "sandbox", base_url: "", model: "", timeout_ms: 0, weight: 0, cost: null }],
    });
    const [header, , , small] = (await run("models list")).stdout.split("\n");
    expect(header).toMatch(/^ID +CONTEXT +MAX OUTPUT +INPUT \/ 1M +CACHED .* OUTPUT \/ 1M .* CAPABILITIES +UPSTREAMS$/);
    expect(small).toMatch(/^vx-sandbox-small +8192 +4096 +\$0\.25 +\$0\.25 +\$0\.25 +\$0\.25 +\$1\.25 .* sandbox$/);
  });

  test("prices lists the versions of a model", async () => {
    const { versions, next_page_token } = await json("prices vx-sandbox-small");
    expect(next_page_token).toBe("");
    expect(versions).toMatchObject([{ model: "vx-sandbox-small", version: 1, prices: { input: 250_000, output: 1_250_000 } }]);
    const [header, first] = (await run("prices vx-sandbox-small")).stdout.split("\n");
    expect(header).toMatch(/^VERSION +EFFECTIVE FROM +INPUT \/ 1M .* REQUEST$/);
    expect(first).toMatch(/^ +1 +\d{4}-\S+ +\$0\.25 /);
  });

  test("prices set-account gives an account a discount, and a model prices of its own", async () => {
    const account = await newAccount();
    const set = async (args: string) => (await json(`prices set-account ${account} --reason 'contract 7' ${args}`)).prices;
    expect(await set("--discount 12.5%")).toMatchObject({ version: 1, model: "", discount_bps: 1_250, prices: null });
    const tiers = "[{above_input_tokens: 9, input: 4, output: 6}]";
    const file = temporaryFile("account.yaml", `prices: {input: 3, output: 5, tiers: ${tiers}}`);
    expect(await set(`--model vx-sandbox-small --file ${file}`)).toMatchObject({
      ...{ version: 2, model: "vx-sandbox-small" },
      prices: { input: 3, cache_write_1h: 3, reasoning: 5, tiers: [{ above_input_tokens: 9, input: 4, cached_input: 4 }] },
    });
    await set("--model vx-sandbox-small --remove");
    const { stdout } = await run(`prices account ${account}`);
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^VERSION +EFFECTIVE FROM +MODEL +DISCOUNT .* TIERS$/),
      expect.stringMatching(/^ +3 .* vx-sandbox-small +removed/),
      expect.stringMatching(/^ +2 .* vx-sandbox-small .* above 9: \$0\.000004 in, \$0\.000006 out$/),
      expect.stringMatching(/^ +1 .* all +12\.5 %/),
      "",
    ]);
    const wrong = temporaryFile("wrong.yaml", "input: 3\noutput: -1\n");
    const args = `${account} --reason x --model vx-sandbox-small --file ${wrong}`;
    refused(await run(`prices set-account ${args}`), /output: must be at least 0/);
  });

  test("rerate and ledger refund correct charges of the server", async () => {
    const file = temporaryFile("prices.yaml", "input: 3\noutput: 5\n");
    const rerate = `rerate --model vx-sandbox-small --from 2030-01-01 --to 2030-02-01 --prices ${file} --reason wrong`;
    expect(await run(rerate)).toEqual({ code: 0, stdout: "", stderr: "No charge differs.\n" });
    refused(await run(`${rerate} --model none`), /none/);
    const account = await newAccount();
    const entry = typeIds.generation(laneOfId(account));
    refused(await run(`ledger refund ${account} ${entry} --reason empty`), /no charged generation/);
  });
});

describe("plans, keys and their limits", () => {
  test("plans are set and listed", async () => {
    const [header, row] = (await run("plans set tiny --rpm 5 --max-active-keys 2 --max-keys-created-per-hour 7")).stdout.split(
      "\n",
    );
    expect(header).toMatch(/^NAME +RPM +MAX ACTIVE KEYS +MAX KEYS CREATED PER HOUR$/);
    expect(row).toMatch(/^tiny +5 +2 +7$/);
    const tiny = { name: "tiny", rpm: 5, max_active_keys: 2, max_keys_created_per_hour: 7, accounts: 0, active_keys: 0 };
    expect((await json("plans list")).plans).toContainEqual(tiny);
  });

  test("a key is created on a plan with scopes, and revoked", async () => {
    const created = await newKey("--plan free --scope generate --scope read");
    expect(Object.keys(created)).toEqual(["api_key", "secret"]);
    expect(created.secret).toMatch(/^vx_live_/);
    const key = { name: "ci", plan: "free", state: "active", rate_limit_rpm: 20, expires_at: null };
    expect(created.api_key).toMatchObject({ id: expect.stringMatching(/^key_/), ...key, scopes: ["generate", "read"] });
    const revoked = await json(`keys revoke ${created.api_key.id}`);
    expect(revoked.api_key).toMatchObject({ state: "revoked", revoked_at: expect.any(String) });
  });

  test("create prints the full key on stdout and a warning on stderr", async () => {
    const account = await newAccount();
    const { code, stdout, stderr } = await run(`keys create ${account} --name ci --expires-at 2100-01-31`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "The full key is shown only once. Store it now.\n" });
    const secret = /\n(vx_live_\w+)\n$/.exec(stdout)?.[1] ?? "";
    expect(secret.length).toBeGreaterThan(30);
    const list = await run(`keys list --account ${account}`);
    expect(list.stdout).toMatch(/ci .*active +600 .*2100-01-31T00:00:00Z/);
    expect(list.stdout).not.toContain(secret);
  });

  test("report-leak reads the key from the input and revokes it and the keys that it created", async () => {
    const { secret } = await newKey();
    const report = (key: string, args = "") => vx(words(`keys report-leak ${args}`), envOf(server), { input: `${key}\n` });
    const { code, stdout, stderr } = await report(secret, "--url https://paste.example/1");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Revoked 1 key: key_\w+ of acct_\w+ and those that it created\.\n$/);
    expect(JSON.parse((await report(secret, "--json")).stdout)).toMatchObject({ revoked_keys: 0 });
    for (const input of ["", secret.slice(0, -1), `${secret.slice(0, -1)}_`]) {
      const refused = await report(input);
      expect(refused).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toMatch(/^vx: the first line of the input is not a complete key/);
      if (input !== "") expect(refused.stderr).not.toContain(input);
    }
  });

  test.skipIf(process.platform !== "linux")("report-leak does not show a key that is typed", async () => {
    const { secret } = await newKey();
    const command = `exec "${process.execPath}" "${VX}" keys report-leak`;
    const args = ["--quiet", "--return", "--command", command, "/dev/null"];
    const terminal = spawn("script", args, { env: cleanEnv(envOf(server)) });
    let shown = "";
    for await (const output of terminal.stdout.setEncoding("utf8")) {
      shown += output;
      if (shown.endsWith("It is not shown:\r\n")) terminal.stdin.write(`${secret}\r`);
    }
    expect(shown).toMatch(/^Paste the leaked key .*\r\nRevoked 1 key: key_\w+ of acct_\w+ and .*\r\n$/);
    expect(shown).not.toContain(secret.slice(-8));
  });

  test("set-limit sets a limit and restores the limit of the plan", async () => {
    const { api_key: key } = await newKey("--rpm 7");
    expect(key.rate_limit_rpm).toBe(7);
    expect((await json(`keys set-limit ${key.id} --rpm 30`)).api_key.rate_limit_rpm).toBe(30);
    expect((await json(`keys set-limit ${key.id} --default`)).api_key.rate_limit_rpm).toBe(600);
  });

  test("create sets several models and limits of a key", async () => {
    const limits =
      "--limit cost/month=25.00 --limit tokens/minute=5000,model=vx-sandbox-small,per=user --limit cost_alert/week=12.50";
    const { api_key: key } = await newKey(`--model vx-sandbox-small --model vx-sandbox-large ${limits}`);
    expect(key).toMatchObject({
      models: ["vx-sandbox-small", "vx-sandbox-large"],
      limits: [
        { metric: "cost", window: "month", amount: 25_000_000, model: "", per: "" },
        { metric: "cost_alert", window: "week", amount: 12_500_000 },
        { metric: "tokens", window: "minute", amount: 5000, model: "vx-sandbox-small", per: "user" },
      ],
    });
  });

  test("the log has the reason of an update", async () => {
    const { api_key: key } = await newKey();
    await json(`keys update ${key.id} --name ci-2 --reason less`);
    const { events } = await json(`log --target ${key.id}`);
    expect(events[0]).toMatchObject({ reason: "less", details: { name: "ci-2" } });
  });

  test("rotate prints a new key once, and the time until which the one before works", async () => {
    const { api_key: key, secret } = await newKey();
    const overlap = await json(`keys rotate ${key.id} --overlap-seconds 3600`);
    expect(overlap.secret).toMatch(/^vx_live_/);
    expect(overlap.secret).not.toBe(secret);
    expect(overlap.api_key).toMatchObject({ id: key.id, previous_expires_at: expect.any(String) });
    const { stdout, stderr } = await run(`keys rotate ${key.id}`);
    expect(stderr).toBe("The full key is shown only once. Store it now.\n");
    expect(/\n(vx_live_\w+)\n$/.exec(stdout)?.[1]).toHaveLength(secret.length);
    expect(stdout).not.toContain(overlap.secret);
    expect((await json(`keys search ${key.id}`)).keys).toMatchObject([{ api_key: { previous_expires_at: null } }]);
  });

  test("search finds keys of all accounts, also by a full key", async () => {
    const { api_key: key, secret } = await newKey("--name Searched");
    for (const text of [secret, key.masked_key, key.id, "searched"])
      expect((await json(`keys search ${text}`)).keys).toMatchObject([{ api_key: { id: key.id } }]);
    expect((await run("keys search searched")).stdout).toMatch(/Searched +vx_live_\S+ +pro +generate,read +active +acct_/);
    expect((await run("keys search nothing")).stderr).toBe("No key matches.\n");
  });
});

test("operators are created, listed, given other roles and revoked, and their tokens call the server", async () => {
  const { operator } = await json("operators create --name ada --role admin");
  expect(operator).toMatchObject({ id: expect.stringMatching(/^op_/), name: "ada", role: "admin", state: "active" });
  const { code, stdout, stderr } = await run("operators create --name vic --role viewer");
  const note = "The token is shown only once. Set it as VX_ADMIN_TOKEN to use it.\n";
  expect({ code, stderr }).toEqual({ code: 0, stderr: note });
  const viewer = { ...envOf(server), VX_ADMIN_TOKEN: /\n(vxo_\w+)\n$/.exec(stdout)?.[1] ?? "" };
  const list = await vx(["operators", "list"], viewer);
  expect(list.stdout).toMatch(/^ID .*\nop_\S+ +vic +viewer +active .*\nop_\S+ +ada +admin +active /);
  expect(list.stdout).not.toContain("vxo_");
  refused(await vx(["operators", "set-role", operator.id, "admin"], viewer), /requires the role "admin"/);
  refused(await run(`operators revoke ${operator.id}`), /^vx: The last operator with the role admin/);
  await json("operators create --name eve --role admin");
  expect((await json(`operators set-role ${operator.id} finance`)).operator.role).toBe("finance");
  expect((await json(`operators revoke ${operator.id}`)).operator.state).toBe("revoked");
});

describe("lists", () => {
  test("a table contains all rows, or --limit rows; --json prints one page", async () => {
    const account = await newAccount();
    for (const reason of ["first", "second", "third"]) await json(`accounts credit ${account} 1 --reason ${reason}`);
    const lines = async (line: string) => (await run(line)).stdout.trimEnd().split("\n");
    const all = await lines(`ledger list --account ${account}`);
    expect(all.map((line) => line.split(" ").at(-1))).toEqual(["REASON", "third", "second", "first"]);
    expect(await lines(`ledger list ${account} --limit 2`)).toHaveLength(3);
    const page = await json(`ledger list ${account} --page-size 2`);
    expect(page.entries.map((entry: { seq: number }) => entry.seq)).toEqual([3, 2]);
    const last = await json(`ledger list ${account} --page-token ${page.next_page_token}`);
    expect(last).toMatchObject({ entries: [{ seq: 1, amount_micros: 1_000_000, reason: "first" }], next_page_token: "" });
    expect((await json(`ledger list ${account} --limit 1`)).entries).toHaveLength(1);
  });

  test("a table contains the rows of all pages", async () => {
    const account = await newAccount();
    await server.database.owner`
      INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason,
        request_id, key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images,
        image_tokens, user_id, trace_id, created_at, hash_version, hash)
      SELECT vx.lane_of(${account}), ${account}, i, 'led_' || i, 0, 'credit', 0, 0, 'many', '', '', '', 0, 0, 0, 0, 0, 0, 0,
        0, '', '', clock_timestamp(), 1, '' FROM generate_series(1, 1001) i`;
    await server.database.owner`UPDATE vx.accounts SET last_seq = 1001 WHERE id = ${account}`;
    const first = (text: string) =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => line.trim().split(" ")[0]);
    const all = ["SEQ", ...Array.from({ length: 1001 }, (_, i) => String(1001 - i))];
    expect(first((await run(`ledger list ${account}`)).stdout)).toEqual(all);
    expect(first((await run(`ledger list ${account} --limit 1000`)).stdout)).toEqual(all.slice(0, -1));
    // Much more than a pipe buffers: the process must not exit before the output is read.
    const page = await spawnVx(words(`ledger list ${account} --page-size 5000 --json`), envOf(server));
    expect(page).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(page.stdout).entries).toHaveLength(1000);
  });
});

test("a command fails if its output ends before the secret that only it returns, and says what to do", async () => {
  const account = await newAccount();
  const { api_key: key } = await newKey();
  const lost = async (line: string) => await vx(words(line), envOf(server), { accepts: () => false });
  const commands: [line: string, message: RegExp][] = [
    [`keys create ${account} --name ci`, /^vx: the key key_\w+ was created, but the secret could not be printed: revoke it\n$/],
    [`keys rotate ${key.id}`, /^vx: the key key_\w+ has a new secret, but the secret could not be printed: revoke it\n$/],
    [`webhooks create --url https://hooks.example.com --reason x --account ${account}`, /webhook wh_\w+ was .* rotate it\n$/],
    ["operators create --name grace --role viewer", /^vx: the operator op_\w+ was created, but its token .* revoke it\n$/],
  ];
  for (const [line, message] of commands) refused({ ...(await lost(line)), stdout: "" }, message);
});

test("an invalid operator token is rejected", async () => {
  const env = { ...envOf(server), VX_ADMIN_TOKEN: "not-the-token-of-this-server" };
  refused(await vx(["plans", "list", "--json"], env), /^vx: The operator token is missing, invalid or revoked/);
});

test("a host of 0.0.0.0 connects to the loopback address", async () => {
  const { VX_ADMIN_URL: url, ...env } = envOf(server);
  const address = { VX_ADMIN_HOST: "0.0.0.0", VX_ADMIN_PORT: new URL(url ?? "").port };
  expect(await vx(["plans", "list"], { ...env, ...address })).toMatchObject({ code: 0 });
});

test("limits are set, raised until a time, listed and removed", async () => {
  const account = await newAccount();
  const cost = `limits set --account ${account} --metric cost --window month`;
  const { limit } = await json(`${cost} --amount 25.00`);
  expect(limit).toMatchObject({ metric: "cost", window: "month", amount: 25_000_000, owner_id: account });
  const raised = { id: limit.id, temporary_amount: 50_000_000, temporary_until: "2130-01-31T00:00:00Z" };
  expect((await json(`${cost} --amount 50 --until 2130-01-31`)).limit).toMatchObject(raised);
  const list = await run(`limits list --account ${account}`);
  expect(list.stdout).toMatch(/cost +month .*\$25\.00 +\$50\.00 until 2130-01-31.*\$0\.00 +\$0\.00 +\$50\.00/);
  const alert = await run(`limits set --account ${account} --metric cost_alert --window day --amount 4.5`);
  expect(alert.stdout).toMatch(/cost_alert +day .*\$4\.50/);
  expect(await json(`limits remove ${limit.id} --account ${account}`)).toEqual({});
  refused(await run(`limits remove ${limit.id} --account ${account}`), /The owner has no such limit/);
  await json("plans set capped --rpm 5 --max-active-keys 2");
  await json("limits set --plan capped --metric concurrent --amount 2");
  const { api_key: key } = await newKey("--plan capped");
  expect((await json(`limits list --key ${key.id}`)).limits).toMatchObject([
    { metric: "concurrent", owner: "plan", owner_id: "capped", amount: 2, remaining: 2 },
    { metric: "requests", amount: 5 },
    { metric: "active_keys", amount: 2, held: 1 },
  ]);
});
