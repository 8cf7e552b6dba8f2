import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { useOwnApp } from "../support/app.ts";
import { cleanEnv } from "../support/clean-env.ts";
import { useOperator } from "../support/fixtures.ts";
import { SERVER as VX } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { typeIds } from "../support/type-ids.ts";
import { envOf, refused, spawnVx, vx, words } from "./support.ts";

const server = useOwnApp();
const operator = useOperator(server);
const folder = createTemporaryFolder("commands");
afterAll(folder.remove);

const run = (...args: string[]) => vx(args, envOf(server));

/** Runs a command that must succeed, and returns its response message. */
// biome-ignore lint/suspicious/noExplicitAny: the tests read messages of different types
async function json(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await run(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toHaveLength(2);
  return JSON.parse(stdout);
}

async function newAccount(): Promise<string> {
  const id = typeIds.account();
  await server.database.owner`SELECT vx.create_account(${TEST_CALLER}, vx.lane_of(${id}), ${id}, 'acme', 'pro')`;
  return id;
}

test("an empty list prints a message on stderr", async () => {
  const account = await newAccount();
  expect(await run("keys", "list", account)).toEqual({
    code: 0,
    stdout: "",
    stderr: "The account has no keys.\n",
  });
  expect((await run("ledger", "list", account)).stderr).toBe("The ledger of the account is empty.\n");
});

describe("events", () => {
  test("list prints them newest first, of an account and of types, as a table and as JSON", async () => {
    const account = await newAccount();
    await json("accounts", "update", account, "--low-balance", "5.00");
    await json("accounts", "credit", account, "10.00", "--reason", "invoice 1001");
    await json("accounts", "suspend", account, "--reason", "overdue");
    const { events } = await json("events", "list", "--account", account);
    expect(events).toMatchObject([
      { type: "account.suspended", seq: 2, account_id: account },
      { type: "credit.posted", seq: 1, data: { amount_micros: 10_000_000, reason: "invoice 1001" } },
    ]);
    const { stdout } = await run("events", "list", "--account", account, "--type", "credit.posted");
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^TIME +ACCOUNT +TYPE +ID +DATA$/),
      expect.stringContaining("amount_micros=10000000"),
      "",
    ]);
    refused(await run("events", "list", "--type", "credit"), /types: must be among balance\.low/);
  });

  test("failures of an account are listed as a table and as JSON, filtered by their code, and counted", async () => {
    const account = await newAccount();
    const { secret } = await json("keys", "create", account, "--name", "test");
    const refusal = await fetch(`${server.url}/v1/generate`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: "hi" }] }),
    });
    expect(refusal.status).toBe(402);
    const list = () => json("failures", "list", "--account", account, "--code", "insufficient_balance");
    await expect.poll(list, { timeout: 30_000 }).toMatchObject({ failures: [{ status: 402 }] });
    const { stdout } = await run("failures", "list", account, "--model", "vx-sandbox-small");
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^TIME +STATUS +CODE +METHOD +MODEL +KEY +MS +REQUEST ID +MESSAGE$/),
      expect.stringMatching(/ 402 +insufficient_balance +POST \/v1\/generate +vx-sandbox-small .* Top up the account/),
      "",
    ]);
    const none = await run("failures", "list", account, "--code", "upstream_error");
    expect(none.stderr).toBe("There are no such calls.\n");
    const counted = await run("failures", "count", account, "--from", "2026-01-01", "--by", "month");
    expect(counted.stdout).toMatch(/^START +CODE +CALLS\n\S+ +insufficient_balance +1\n$/);
    expect(counted.stderr).toMatch(/^Calls are counted from 2026-01-01T00:00:00Z on\.\n$/);
    const uncounted = await run("failures", "count", account, "--model", "other");
    expect(uncounted).toMatchObject({ stdout: "", stderr: "There are no such calls.\n" });
  });

  test("watch prints only new events, each once, until its output is closed", async () => {
    const accountId = await newAccount();
    const reason = "overdue";
    await operator.suspendAccount({ accountId, reason });
    let isWatched = true;
    // The first events may come before the watcher knows which one is the last.
    const changes = (async () => {
      for (; isWatched; await pause(200)) {
        await operator.resumeAccount({ accountId });
        await operator.suspendAccount({ accountId, reason });
      }
    })();
    const printed: { seq: number }[] = [];
    const watch = words(`events watch --account ${accountId} --json`);
    const ended = await vx(watch, envOf(server), {
      accepts: (text) => {
        printed.push(
          ...text
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line)),
        );
        return printed.length < 4;
      },
    });
    isWatched = false;
    await changes;
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const seqs = printed.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, i) => (seqs[0] ?? 0) + i));
    expect(seqs[0]).toBeGreaterThan(1);
  });
});

describe("accounts", () => {
  test("create prints the response message with every field", async () => {
    const { account } = await json("accounts", "create", "--name", "acme", "--plan", "pro");
    expect(account).toEqual({
      id: expect.stringMatching(/^acct_/),
      name: "acme",
      plan: "pro",
      balance_micros: 0,
      balance: "$0.00",
      held_micros: 0,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      external_id: "",
      email: "",
      notes: "",
      state: "active",
      suspended_at: null,
      low_balance_micros: null,
      owed_micros: 0,
      spent_today_micros: 0,
      spent_month_micros: 0,
      closed_at: null,
      grants: [],
    });
    expect(await json("accounts", "get", account.id)).toEqual({ account });
  });

  test("a table has a header, and amounts are right-aligned", async () => {
    const account = await newAccount();
    await json("accounts", "credit", account, "1234.5", "--reason", "invoice 1001");
    const [header = "", row = "", rest] = (await run("accounts", "get", account)).stdout.split("\n");
    expect(header).toMatch(/^ID +NAME +STATE +PLAN +BALANCE +HELD +CREATED$/);
    expect(row).toContain("$1234.50");
    expect(row.indexOf("$1234.50") + "$1234.50".length).toBe(header.indexOf("BALANCE") + "BALANCE".length);
    expect(rest).toBe("");
  });

  test("credit adds the exact amount once per idempotency key", async () => {
    const account = await newAccount();
    const once = (amount: string) =>
      words(`accounts credit ${account} ${amount} --reason 'invoice 1001' --idempotency-key i1001`);
    const first = await json(...once("25.00"));
    expect(first.entry).toMatchObject({ kind: "credit", amount_micros: 25_000_000, reason: "invoice 1001" });
    expect(await json(...once("25.00"))).toEqual(first);
    const second = await json("accounts", "credit", account, "0.000001", "--reason", "a second one");
    expect(second.account.balance).toBe("$25.000001");
    refused(await run(...once("26.00"), "--json"), /^vx: .*idempotency/i);
  });

  test("a credit expires at the end of a day in UTC", async () => {
    const account = await newAccount();
    const credit = ["accounts", "credit", account, "5.00", "--reason", "welcome", "--expires"];
    await json(...credit, "2099-01-31", "--promotional");
    const { stdout } = await run("log", "--account", account, "--method", "CreditAccount");
    expect(stdout).toContain("expires_at=2099-02-01T00:00:00.000Z promotional=true");
    refused(await run(...credit, "2020-01-31"), /expires_at: must be in the future/);
    for (const day of ["2099-02-30", "2099-01-31T00:00:00Z", "soon"])
      expect(await run(...credit, day)).toMatchObject({ code: 2 });
  });

  test("adjust accepts a negative amount up to the balance", async () => {
    const account = await newAccount();
    await json("accounts", "credit", account, "25.00", "--reason", "invoice 1001");
    const { stdout } = await run("accounts", "adjust", account, "-5.00", "--reason", "credited twice");
    expect(stdout).toMatch(/adjustment +-\$5\.00 +acct_\S+ +\$20\.00 +credited twice\n$/);
    const after = await json("accounts", "adjust", "--reason", "before the amount", account, "-5");
    expect(after.account.balance_micros).toBe(15_000_000);
    refused(await run("accounts", "adjust", account, "-500", "--reason", "too much", "--json"), /^vx: /);
  });

  test("set-plan changes the plan of the account", async () => {
    const account = await newAccount();
    expect((await json("accounts", "set-plan", account, "scale")).account.plan).toBe("scale");
    refused(await run("accounts", "set-plan", account, "nonesuch", "--json"), /^vx: plan: there is no such plan/);
  });

  test("an account is named by its id or its external id, and by its unique name where nothing changes", async () => {
    const create = ["accounts", "create", "--name", "globex", "--external-id", "crm-17"];
    const { account } = await json(...create, "--email", "ops@globex.example", "--notes", "calls on Mondays");
    expect(account).toMatchObject({ external_id: "crm-17", notes: "calls on Mondays" });
    for (const reference of [account.id, "crm-17"]) {
      expect(await json("accounts", "get", reference)).toEqual({ account });
    }
    const found = `The account is ${account.id}.\n`;
    const named = await run("accounts", "get", "globex", "--json");
    expect({ ...named, stdout: JSON.parse(named.stdout) }).toEqual({
      code: 0,
      stdout: { account },
      stderr: found,
    });
    const credit = (name: string) => ["accounts", "credit", name, "5", "--reason", "invoice 1002"];
    refused(await run(...credit("globex")), /^vx: .* does not accept the name of an account/);
    await json(...credit("crm-17"));
    expect(await run("usage", "export", "--account", "globex")).toMatchObject({ code: 0, stderr: found });
    expect((await json("ledger", "list", "crm-17")).entries).toHaveLength(1);
    expect((await json("keys", "create", "--account", "crm-17", "--name", "ci")).api_key.name).toBe("ci");
    expect((await json("keys", "list", "crm-17")).api_keys).toHaveLength(1);
    expect((await json("accounts", "search", "GLOB")).accounts).toMatchObject([{ id: account.id }]);
    expect((await json("accounts", "rename", "crm-17", "globex-europe")).account.name).toBe("globex-europe");
    expect((await json("accounts", "update", "crm-17", "--email", "")).account.email).toBe("");
    const suspended = await json("accounts", "suspend", "crm-17", "--reason", "overdue");
    expect(suspended.account).toMatchObject({ state: "suspended", suspended_at: expect.any(String) });
    expect((await json("accounts", "resume", "crm-17")).account.state).toBe("active");
    const { events } = await json("log", "--account", "crm-17", "--limit", "4");
    expect(events.map(({ method }: { method: string }) => method)).toEqual([
      "ResumeAccount",
      "SuspendAccount",
      "UpdateAccount",
      "UpdateAccount",
    ]);
    await newAccount();
    refused(await run("accounts", "get", "acme"), /^vx: account_id: .* of several accounts/);
    expect(await run("accounts", "search", "nonesuch")).toMatchObject({ stderr: "No account matches.\n" });
  });

  test("close takes the balance and ends the account for good, by its external id", async () => {
    const { account } = await json("accounts", "create", "--name", "acme", "--external-id", "leaving");
    await json("accounts", "credit", "leaving", "5", "--reason", "invoice 1003");
    await json("keys", "create", "--account", "leaving", "--name", "ci");
    const close = (...more: string[]) => run("accounts", "close", "leaving", "--reason", "the customer left", ...more);
    expect((await close("--write-off", "--refunded")).code).toBe(2);
    refused(await close(), /^vx: balance: must say whether the balance of \$5\.00 is written off or was refunded/);
    expect((await close("--dry-run")).stdout).toMatch(/keys revoked: 1\n.*\n.*\n.*none\n +balance: \$5\.00\n$/);
    expect((await json("accounts", "get", "leaving")).account.state).toBe("active");
    expect((await close("--refunded")).stdout).toMatch(/ closed .*\n +ledger entry of the balance: led_\w+ -\$5\.00\n$/s);
    expect((await json("accounts", "get", account.id)).account).toMatchObject({
      name: "closed",
      state: "closed",
      balance_micros: 0,
    });
    refused(await run("accounts", "resume", account.id), /^vx: account_id: is closed, which is final/);
  });

  test("an unknown account exits 1", async () => {
    refused(await run("accounts", "get", "acct_nonesuch", "--json"), /^vx: .*acct_nonesuch/);
  });

  test("an error names the field and contains no control characters", async () => {
    const outcome = await run("accounts", "create", "--name", "a\u001b[31mb", "--json");
    refused(outcome, /^vx: .*\bname\b/);
    expect(outcome.stderr.trimEnd()).not.toMatch(/\p{Cc}/u);
  });
});

describe("models", () => {
  test("list prints the response message, with upstreams", async () => {
    const { models, next_page_token } = await json("models", "list");
    expect(next_page_token).toBe("");
    expect(models).toHaveLength(3);
    expect(models[2]).toEqual({
      id: "vx-sandbox-small",
      owned_by: "vx",
      created: 1_763_683_200,
      context_window: 8_192,
      max_output_tokens: 4_096,
      input_micros_per_million_tokens: 250_000,
      output_micros_per_million_tokens: 1_250_000,
      prices: {
        input: 250_000,
        cached_input: 250_000,
        cache_write: 250_000,
        cache_write_1h: 250_000,
        output: 1_250_000,
        reasoning: 1_250_000,
        image: 0,
        request: 0,
        tiers: [],
      },
      capabilities: expect.any(Array),
      aliases: [],
      upstreams: [{ kind: "sandbox", base_url: "", model: "", timeout_ms: 0, weight: 0, cost: null }],
    });
  });

  test("the table of models contains prices as amounts", async () => {
    const [header, , , small] = (await run("models", "list")).stdout.split("\n");
    expect(header).toMatch(/^ID +CONTEXT +MAX OUTPUT +INPUT \/ 1M +CACHED .* OUTPUT \/ 1M .* CAPABILITIES +UPSTREAMS$/);
    expect(small).toMatch(/^vx-sandbox-small +8192 +4096 +\$0\.25 +\$0\.25 +\$0\.25 +\$0\.25 +\$1\.25 .* sandbox$/);
  });

  test("prices lists the versions of a model", async () => {
    const { versions, next_page_token } = await json("prices", "vx-sandbox-small");
    expect(next_page_token).toBe("");
    expect(versions).toMatchObject([{ model: "vx-sandbox-small", version: 1, prices: { input: 250_000, output: 1_250_000 } }]);
    const [header, first] = (await run("prices", "vx-sandbox-small")).stdout.split("\n");
    expect(header).toMatch(/^VERSION +EFFECTIVE FROM +INPUT \/ 1M .* REQUEST$/);
    expect(first).toMatch(/^ +1 +\d{4}-\S+ +\$0\.25 /);
    refused(await run("prices", "nonesuch", "--json"), /^vx: .*nonesuch/);
  });

  test("prices set-account gives an account a discount, and a model prices of its own", async () => {
    const account = await newAccount();
    const model = ["--model", "vx-sandbox-small"];
    const set = (...args: string[]) => json("prices", "set-account", account, "--reason", "contract 7", ...args);
    expect(await set("--discount", "12.5%")).toMatchObject({
      prices: { version: 1, model: "", discount_bps: 1_250, prices: null },
    });
    const file = temporaryFile(
      "prices.yaml",
      "prices: {input: 3, output: 5, tiers: [{above_input_tokens: 9, input: 4, output: 6}]}",
    );
    expect(await set(...model, "--file", file)).toMatchObject({
      prices: {
        version: 2,
        model: "vx-sandbox-small",
        prices: {
          input: 3,
          cache_write_1h: 3,
          reasoning: 5,
          tiers: [{ above_input_tokens: 9, input: 4, cached_input: 4 }],
        },
      },
    });
    await set(...model, "--remove");
    const { stdout } = await run("prices", "account", account);
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^VERSION +EFFECTIVE FROM +MODEL +DISCOUNT .* TIERS$/),
      expect.stringMatching(/^ +3 .* vx-sandbox-small +removed/),
      expect.stringMatching(/^ +2 .* vx-sandbox-small .* above 9: \$0\.000004 in, \$0\.000006 out$/),
      expect.stringMatching(/^ +1 .* all +12\.5 %/),
      "",
    ]);
    expect((await run("prices", "account", await newAccount())).stderr).toBe("The account has the prices of the models.\n");
    for (const [args, message] of [
      [[], /add one of --discount, --file and --remove/],
      [["--discount", "101%"], /--discount: must be a percentage/],
      [["--file", file], /--file needs --model/],
    ] as const) {
      const { code, stderr } = await run("prices", "set-account", account, ...args);
      expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
    }
    const wrong = temporaryFile("wrong.yaml", "input: 3\noutput: -1\n");
    refused(await run("prices", "set-account", account, ...model, "--file", wrong), /output: must be at least 0/);
  });
});

test("rerate prints what accounts get back, and needs all of its options", async () => {
  const file = temporaryFile("prices.yaml", "input: 3\noutput: 5\n");
  const args = words(`--model vx-sandbox-small --from 2030-01-01 --to 2030-02-01 --prices ${file}`);
  expect(await run("rerate", ...args, "--reason", "wrong price")).toEqual({
    code: 0,
    stdout: "",
    stderr: "No charge differs.\n",
  });
  const { code, stderr } = await run("rerate", ...args);
  expect([code, stderr]).toEqual([2, expect.stringContaining("'--reason <text>' is missing")]);
  refused(await run("rerate", ...args, "--reason", "x", "--model", "none"), /none/);
});

test("ledger refund needs a generation of the account", async () => {
  const account = await newAccount();
  const entry = typeIds.generation(laneOfId(account));
  refused(await run("ledger", "refund", account, entry, "--reason", "empty"), /no charged generation/);
});

function temporaryFile(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

describe("plans, keys and their limits", () => {
  test("the table of plans contains their limits", async () => {
    const limits = ["--rpm", "5", "--max-active-keys", "2", "--max-keys-created-per-hour", "7"];
    const [header, row] = (await run("plans", "set", "shown", ...limits)).stdout.split("\n");
    expect(header).toMatch(/^NAME +RPM +MAX ACTIVE KEYS +MAX KEYS CREATED PER HOUR$/);
    expect(row).toMatch(/^shown +5 +2 +7$/);
  });

  test("a key on a new plan can be created, listed and revoked", async () => {
    const { plan } = await json("plans", "set", "tiny", "--rpm", "5", "--max-active-keys", "2");
    const limits = { rpm: 5, max_active_keys: 2, max_keys_created_per_hour: 20 };
    expect(plan).toEqual({ name: "tiny", ...limits, accounts: 0, active_keys: 0 });
    expect((await json("plans", "list")).plans).toContainEqual(plan);
    const account = await newAccount();
    const create = ["keys", "create", "--account", account, "--name", "ci", "--plan", "tiny"];
    const created = await json(...create, "--scope", "generate", "--scope", "read");
    expect(Object.keys(created)).toEqual(["api_key", "secret"]);
    expect(created.secret).toMatch(/^vx_live_/);
    const key = {
      id: expect.stringMatching(/^key_/),
      name: "ci",
      plan: "tiny",
      state: "active",
      rate_limit_rpm: 5,
    };
    expect(created.api_key).toMatchObject({ ...key, scopes: ["generate", "read"], expires_at: null });
    await json(...create);
    refused(await run(...create, "--json"), /^vx: .*active keys/);
    const revoked = await json("keys", "revoke", created.api_key.id);
    expect(revoked.api_key).toMatchObject({ state: "revoked", revoked_at: expect.any(String) });
  });

  test("create prints the full key on stdout and a warning on stderr", async () => {
    const account = await newAccount();
    const { code, stdout, stderr } = await run(...words(`keys create ${account} --name ci --expires-at 2100-01-31`));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "The full key is shown only once. Store it now.\n" });
    const secret = /\n(vx_live_\w+)\n$/.exec(stdout)?.[1] ?? "";
    expect(secret.length).toBeGreaterThan(30);
    const list = await run("keys", "list", "--account", account);
    expect(list.stdout).toMatch(/ci .*active +600 .*2100-01-31T00:00:00Z/);
    expect(list.stdout).not.toContain(secret);
  });

  test("report-leak reads the key from the input and revokes it and the keys that it created", async () => {
    const account = await newAccount();
    const { secret } = await json("keys", "create", account, "--name", "leaked");
    const report = (key: string, ...args: string[]) => vx(["keys", "report-leak", ...args], envOf(server), { input: `${key}\n` });
    const { code, stdout, stderr } = await report(secret, "--url", "https://paste.example/1");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Revoked 1 key: key_\w+ of acct_\w+ and those that it created\.\n$/);
    const again = await report(secret, "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({ account_id: account, revoked_keys: 0 });
    for (const input of ["", secret.slice(0, -1), `${secret.slice(0, -1)}_`]) {
      const refused = await report(input);
      expect(refused).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toMatch(/^vx: the first line of the input is not a complete key/);
      if (input !== "") expect(refused.stderr).not.toContain(input);
    }
  });

  test.skipIf(process.platform !== "linux")("report-leak does not show a key that is typed", async () => {
    const { secret } = await json("keys", "create", await newAccount(), "--name", "leaked");
    const command = `exec "${process.execPath}" "${VX}" keys report-leak`;
    const terminal = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
      env: cleanEnv(envOf(server)),
    });
    let shown = "";
    for await (const output of terminal.stdout.setEncoding("utf8")) {
      shown += output;
      if (shown.endsWith("It is not shown:\r\n")) terminal.stdin.write(`${secret}\r`);
    }
    expect(shown).toMatch(/^Paste the leaked key .*\r\nRevoked 1 key: key_\w+ of acct_\w+ and .*\r\n$/);
    expect(shown).not.toContain(secret.slice(-8));
  });

  test("set-limit sets a limit and restores the limit of the plan", async () => {
    const { api_key: key } = await json("keys", "create", await newAccount(), "--name", "ci", "--rpm", "7");
    expect(key.rate_limit_rpm).toBe(7);
    expect((await json("keys", "set-limit", key.id, "--rpm", "30")).api_key.rate_limit_rpm).toBe(30);
    expect((await json("keys", "set-limit", key.id, "--default")).api_key.rate_limit_rpm).toBe(600);
  });

  test("create and update set models and limits of a key, and all and none remove them", async () => {
    const models = ["--model", "vx-sandbox-small", "--model", "vx-sandbox-large"];
    const limits = words(
      "--limit cost/month=25.00 --limit tokens/minute=5000,model=vx-sandbox-small,per=user --limit cost_alert/week=12.50",
    );
    const create = words(`keys create ${await newAccount()} --name ci`);
    const { api_key: key } = await json(...create, ...models, ...limits);
    expect(key).toMatchObject({
      models: ["vx-sandbox-small", "vx-sandbox-large"],
      limits: [
        { metric: "cost", window: "month", amount: 25_000_000, model: "", per: "" },
        { metric: "cost_alert", window: "week", amount: 12_500_000 },
        { metric: "tokens", window: "minute", amount: 5000, model: "vx-sandbox-small", per: "user" },
      ],
    });
    const one = words("--model vx-sandbox-large --limit concurrent=4 --cidr 10.0.0.0/8 --cidr ::1");
    expect((await json("keys", "update", key.id, ...one)).api_key).toMatchObject({
      models: ["vx-sandbox-large"],
      limits: [{ metric: "concurrent", window: "", amount: 4 }],
      allowed_cidrs: ["10.0.0.0/8", "::1/128"],
    });
    const none = ["--model", "all", "--limit", "none", "--cidr", "all"];
    expect((await json("keys", "update", key.id, ...none)).api_key).toMatchObject({
      models: [],
      limits: [],
      allowed_cidrs: [],
    });
    for (const limit of ["tokens", "tokens/day=", "tokens/day=5,user", "cost/day=1,000"]) {
      expect(await run("keys", "update", key.id, "--limit", limit)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/--limit: must be a/),
      });
    }
    refused(await run("keys", "update", key.id, "--limit", "concurrent/day=4"), /limits\[0\]\.window/);
    refused(await run("keys", "update", key.id, "--cidr", "10.0.0.1/8"), /allowed_cidrs\[0\].*10\.0\.0\.0\/8/);
    refused(await run("keys", "update", key.id, "--model", "no-such-model"), /models\[0\]/);
  });

  test("update changes what its options name, and its words restore what a new key has", async () => {
    const { api_key: key } = await json("keys", "create", await newAccount(), "--name", "ci");
    const change = ["--name", "ci-2", "--scope", "read", "--rpm", "30", "--expires-at", "2100-01-31"];
    expect((await json("keys", "update", key.id, ...change, "--reason", "less")).api_key).toMatchObject({
      name: "ci-2",
      scopes: ["read"],
      rate_limit_rpm: 30,
      expires_at: "2100-01-31T00:00:00Z",
    });
    const words = ["--rpm", "default", "--expires-at", "never"];
    expect((await json("keys", "update", key.id, ...words)).api_key).toMatchObject({
      name: "ci-2",
      scopes: ["read"],
      rate_limit_rpm: 600,
      expires_at: null,
    });
    expect(await run("keys", "update", key.id)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/nothing to change; add --name/),
    });
    const { events } = await json("log", "--target", key.id);
    expect(events[1]).toMatchObject({ reason: "less", details: { name: "ci-2", rate_limit_rpm: "30" } });
    await json("keys", "revoke", key.id);
    refused(await run("keys", "update", key.id, "--name", "ci-3"), /key_id: .*revoked/);
    refused(await run("keys", "update", typeIds.key(7), "--name", "ci-3"), /There is no such key/);
  });

  test("rotate prints a new key once, and the time until which the one before works", async () => {
    const { api_key: key, secret } = await json("keys", "create", await newAccount(), "--name", "ci");
    const overlap = await json("keys", "rotate", key.id, "--overlap-seconds", "3600");
    expect(overlap.secret).toMatch(/^vx_live_/);
    expect(overlap.secret).not.toBe(secret);
    expect(overlap.api_key).toMatchObject({ id: key.id, previous_expires_at: expect.any(String) });
    const { stdout, stderr } = await run("keys", "rotate", key.id);
    expect(stderr).toBe("The full key is shown only once. Store it now.\n");
    const printed = /\n(vx_live_\w+)\n$/.exec(stdout)?.[1] ?? "";
    expect(printed).toHaveLength(secret.length);
    expect(stdout).not.toContain(overlap.secret);
    const { keys } = await json("keys", "search", key.id);
    expect(keys).toMatchObject([{ api_key: { previous_expires_at: null } }]);
    expect(await run("keys", "rotate", key.id, "--overlap-seconds", "2592001")).toMatchObject({ code: 2 });
    await json("keys", "revoke", key.id);
    refused(await run("keys", "rotate", key.id), /key_id: .*revoked/);
  });

  test("search finds keys of all accounts, also by a full key", async () => {
    const account = await newAccount();
    const { api_key: key, secret } = await json("keys", "create", account, "--name", "Searched");
    for (const text of [secret, key.masked_key, key.id, "searched"]) {
      const { keys } = await json("keys", "search", text);
      expect(keys).toMatchObject([{ account_id: account, api_key: { id: key.id } }]);
    }
    expect((await run("keys", "search", "searched")).stdout).toMatch(/Searched +vx_live_\S+ +active +acct_/);
    expect((await run("keys", "search", "nothing")).stderr).toBe("No key matches.\n");
  });

  test("an expiry in the past is an error that names the field", async () => {
    const create = words(`keys create ${await newAccount()} --name ci --expires-at 2001-01-01 --json`);
    refused(await run(...create), /^vx: .*expires_at/);
  });
});

test("operators are created, listed, given other roles and revoked, and their tokens call the server", async () => {
  const create = ["operators", "create", "--name", "ada", "--role"];
  const { operator, secret } = await json(...create, "admin");
  expect(operator).toMatchObject({
    id: expect.stringMatching(/^op_/),
    name: "ada",
    role: "admin",
    state: "active",
  });
  refused(await run(...create, "viewer", "--json"), /^vx: name: is the name of another active operator/);
  refused(await run("operators", "revoke", operator.id), /^vx: The last operator with the role admin/);
  const { code, stdout, stderr } = await run("operators", "create", "--name", "vic", "--role", "viewer");
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: "The token is shown only once. Set it as VX_ADMIN_TOKEN to use it.\n",
  });
  const viewer = { ...envOf(server), VX_ADMIN_TOKEN: /\n(vxo_\w+)\n$/.exec(stdout)?.[1] ?? "" };
  const list = await vx(["operators", "list"], viewer);
  expect(list.stdout).toMatch(/^ID .*\nop_\S+ +vic +viewer +active .*\nop_\S+ +ada +admin +active /);
  expect(list.stdout).not.toContain("vxo_");
  refused(await vx(["plans", "set", "x", "--rpm", "5", "--max-active-keys", "2"], viewer), /requires the role "admin"/);
  const admin = { ...envOf(server), VX_ADMIN_TOKEN: secret };
  expect(await vx(["operators", "create", "--name", "eve", "--role", "admin"], admin)).toMatchObject({
    code: 0,
  });
  refused(await vx(["operators", "set-role", operator.id, "admin"], viewer), /requires the role "admin"/);
  expect((await json("operators", "set-role", operator.id, "finance")).operator.role).toBe("finance");
  refused(await vx(["plans", "set", "x", "--rpm", "5", "--max-active-keys", "2"], admin), /role "admin"/);
  expect((await json("operators", "revoke", operator.id)).operator.state).toBe("revoked");
  refused(await vx(["plans", "list"], admin), /revoked/);
});

describe("lists", () => {
  test("a table contains all rows, or --limit rows; --json prints one page", async () => {
    const account = await newAccount();
    for (const reason of ["first", "second", "third"]) {
      await json("accounts", "credit", account, "1", "--reason", reason);
    }
    const all = (await run("ledger", "list", "--account", account)).stdout.trimEnd().split("\n");
    expect(all.map((line) => line.split(" ").at(-1))).toEqual(["REASON", "third", "second", "first"]);
    const two = (await run("ledger", "list", account, "--limit", "2")).stdout.trimEnd().split("\n");
    expect(two).toHaveLength(3);
    const page = await json("ledger", "list", account, "--page-size", "2");
    expect(page.entries.map((entry: { seq: number }) => entry.seq)).toEqual([3, 2]);
    const last = await json("ledger", "list", account, "--page-token", page.next_page_token);
    expect(last.entries).toEqual([expect.objectContaining({ seq: 1, amount_micros: 1_000_000, reason: "first" })]);
    expect(last.next_page_token).toBe("");
    expect((await json("ledger", "list", account, "--limit", "1")).entries).toHaveLength(1);
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
    const all = (await run("ledger", "list", account)).stdout.trimEnd().split("\n");
    expect(all.map((line) => line.trim().split(" ")[0])).toEqual([
      "SEQ",
      ...Array.from({ length: 1001 }, (_, i) => String(1001 - i)),
    ]);
    const some = (await run("ledger", "list", account, "--limit", "1000")).stdout.trimEnd().split("\n");
    expect(some).toHaveLength(1001);
    // Much more than a pipe buffers: the process must not exit before the output is read.
    const page = await spawnVx(["ledger", "list", account, "--page-size", "5000", "--json"], envOf(server));
    expect(page).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(page.stdout).entries).toHaveLength(1000);
  });

  test("page options without --json are wrong usage", async () => {
    expect(await run("accounts", "list", "--page-size", "2")).toMatchObject({ code: 2, stdout: "" });
  });

  test("an unknown page token is an error", async () => {
    refused(await run("accounts", "list", "--json", "--page-token", "x"), /^vx: page_token/);
  });
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

describe("limits", () => {
  test("set, raise until a time, list and remove them", async () => {
    const account = await newAccount();
    const cost = ["--account", account, "--metric", "cost", "--window", "month"];
    const { limit } = await json("limits", "set", ...cost, "--amount", "25.00");
    expect(limit).toMatchObject({ metric: "cost", window: "month", amount: 25_000_000, owner_id: account });
    const raised = await json("limits", "set", ...cost, "--amount", "50", "--until", "2130-01-31");
    expect(raised.limit).toMatchObject({
      id: limit.id,
      amount: 25_000_000,
      temporary_amount: 50_000_000,
      temporary_until: "2130-01-31T00:00:00Z",
      remaining: 50_000_000,
    });
    const { stdout } = await run("limits", "list", "--account", account);
    expect(stdout).toMatch(/cost +month .*\$25\.00 +\$50\.00 until 2130-01-31.*\$0\.00 +\$0\.00 +\$50\.00/);
    const alert = ["--account", account, "--metric", "cost_alert", "--window", "day", "--amount", "4.5"];
    expect((await run("limits", "set", ...alert)).stdout).toMatch(/cost_alert +day .*\$4\.50/);
    refused(await run("limits", "set", ...alert, "--window", "hour"), /limit\.window: must be one of day/);
    const { limits } = await json("limits", "list", "--account", account);
    const { id } = limits.find(({ metric }: { metric: string }) => metric === "cost_alert");
    expect(await json("limits", "remove", id, "--account", account)).toEqual({});
    expect(await json("limits", "remove", limit.id, "--account", account)).toEqual({});
    refused(await run("limits", "remove", limit.id, "--account", account), /The owner has no such limit/);
    const { limits: others } = await json("limits", "list", "--account", account);
    expect(others).toMatchObject([
      { owner: "plan", metric: "requests", window: "minute", spent: 0 },
      { owner: "plan", metric: "active_keys", held: 0 },
    ]);
  });

  test("of a plan apply to each key, and a limit that does not exist is not raised", async () => {
    await json("plans", "set", "capped", "--rpm", "5", "--max-active-keys", "2");
    const plan = ["--plan", "capped", "--metric", "concurrent"];
    refused(await run("limits", "set", ...plan, "--amount", "2", "--until", "2130-01-31"), /no such limit to raise/);
    await json("limits", "set", ...plan, "--amount", "2");
    const account = await newAccount();
    const { api_key: key } = await json("keys", "create", account, "--name", "ci", "--plan", "capped");
    const { limits } = await json("limits", "list", "--key", key.id);
    expect(limits).toMatchObject([
      { metric: "concurrent", owner: "plan", owner_id: "capped", amount: 2, remaining: 2 },
      { metric: "requests", amount: 5 },
      { metric: "active_keys", amount: 2, held: 1 },
    ]);
  });

  test("need one owner and an amount of the metric", async () => {
    expect(await run("limits", "list")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--plan, --account/),
    });
    const wrong = await run(...words("limits set --plan pro --metric tokens --window day --amount 2.5"));
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/a whole number/) });
  });
});
