import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, test } from "vitest";
import { createProgress } from "../../src/cli/output.ts";
import { QUARTER_MS } from "../../src/domain/periods.ts";
import { useOwnApp } from "../support/app.ts";
import { parseCsv } from "../support/csv.ts";
import { createTestAccount, createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { FOCUS } from "../support/focus-columns.ts";
import { envOf, vx, words } from "./support.ts";

const MODEL = "vx-sandbox-small";
const RANGE = "--from 2026-05-01 --to 2026-06-01";

let keys: TestKey[];

const app = useOwnApp();
const operator = useOperator(app);
beforeAll(async () => {
  keys = [await createTestKey(operator), await createTestKey(operator)];
  for (const { id, accountId } of keys) {
    // Two days. The cost is rounded up: the tokens of the second cost 2.5 micros.
    await insertUsage(accountId, id, "2026-05-01T10:15Z", { requests: 2, input: 8, output: 4, cost: 7 });
    await insertUsage(accountId, id, "2026-05-02T00:00Z", { requests: 1, input: 10, output: 0, cost: 3 });
    await insertUsage(accountId, id, "2026-06-01T00:00Z", { requests: 9, input: 9, output: 9, cost: 99 });
    const [gift, back] = [{ idempotencyKey: "a" }, { idempotencyKey: "b", reason: "chargeback" }];
    await operator.creditAccount({ ...gift, accountId, amountMicros: 5_000_000n, reason: '=1+1, "gift"' });
    await operator.adjustAccount({ ...back, accountId, amountMicros: -1_500_000n });
    await app.database.owner`UPDATE vx.ledger SET created_at = '2026-05-03T12:00Z' WHERE account_id = ${accountId}`;
  }
});

type Sum = { requests: number; input: number; output: number; cost: number; list?: number; tier?: number };

async function insertUsage(accountId: string, keyId: string, time: string, { list = 0, tier = 0, ...sum }: Sum) {
  await app.database.owner`
    INSERT INTO vx.usage_quarters
    VALUES (vx.lane_of(${accountId}), ${accountId}, ${Date.parse(time) / QUARTER_MS}, ${keyId}, ${MODEL}, 'ada', 1,
      ${sum.requests}, ${sum.input}, 0, 0, ${sum.output}, 0, 0, 0, ${sum.cost}, 0, ${tier}, ${list})`;
}

async function runWithNotes(line: string) {
  const { code, stdout, stderr } = await vx(words(line), envOf(app));
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return { stdout, stderr };
}

async function run(line: string): Promise<string> {
  const { stdout, stderr } = await runWithNotes(line);
  expect(stderr).toBe("");
  return stdout;
}

test("with --json, an export is the response messages, whose texts are the file", async () => {
  const file = `usage export --format csv ${RANGE}`;
  const pieces = (await run(`${file} --json`))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { text: string });
  expect(pieces.map(({ text }) => text).join("")).toBe(await run(file));
});

test("usage margin has charges, cost and margin, by model and upstream unless groups are given", async () => {
  const [header, first] = (await run(`usage margin ${RANGE}`)).split("\n");
  expect(header).toMatch(/^START +MODEL +REQUESTS +CHARGES +COST +MARGIN$/);
  expect(first).toMatch(/ \$0\.00 +\$\d\S+$/);
  const { rows } = JSON.parse(await run(`usage margin --group-by account ${RANGE} --json`));
  for (const { usage, margin_micros } of rows) expect(margin_micros).toBe(usage.cost_micros);
});

test("csv has a line per quarter of an hour, account, key, model, user and price version", async () => {
  const { rows } = parseCsv(await run(`usage export --format csv ${RANGE}`));
  expect(rows).toHaveLength(4);
  const [key] = keys;
  const own = rows.filter(({ account_id }) => account_id === key?.accountId);
  expect(own).toMatchObject([
    {
      ...{ start: "2026-05-01T10:15:00Z", key_id: key?.id, model: MODEL, user: "ada", price_version: "1" },
      ...{ requests: "2", input_tokens: "8", output_tokens: "4", cost_micros: "7", cost: "$0.000007" },
    },
    { start: "2026-05-02T00:00:00Z", requests: "1", cost_micros: "3" },
  ]);
});

describe("focus", () => {
  let header: string[];
  let rows: Record<string, string>[];

  beforeAll(async () => {
    ({ header, rows } = parseCsv(await run(`usage export --format focus ${RANGE}`)));
  });

  test("has every mandatory column, known columns in order, and own columns last", () => {
    const mandatory = [...FOCUS].filter(([, { level }]) => level === "mandatory").map(([name]) => name);
    expect(mandatory.filter((name) => !header.includes(name))).toEqual([]);
    const known = header.filter((name) => !name.startsWith("x_"));
    expect(known).toEqual([...FOCUS.keys()].filter((name) => known.includes(name)));
    expect(header.slice(known.length).every((name) => /^x_[A-Z][A-Za-z]+$/.test(name))).toBe(true);
  });

  test("has values of the types of the specification, and null only where it is allowed", () => {
    expect(rows).toHaveLength(10);
    const forms = { string: /./, decimal: /^-?\d+(\.\d+)?$/, time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, json: /^\{.*\}$/ };
    for (const row of rows) {
      for (const [name, { nullable, type }] of FOCUS) {
        const value = row[name];
        if (value === undefined || (value === "" && nullable)) continue;
        expect(value, name).toMatch(forms[type]);
      }
      expect(["Usage", "Purchase", "Credit", "Adjustment"]).toContain(row.ChargeCategory);
      expect(["", "Correction"]).toContain(row.ChargeClass);
      expect([row.ServiceCategory, row.BillingCurrency]).toEqual(["AI and Machine Learning", "USD"]);
    }
  });

  test("has values that fit each other as the specification demands", () => {
    const ofUsage = ["ConsumedQuantity", "ConsumedUnit", "SkuPriceDetails"];
    const ofPrice = ["ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit"];
    const ofSku = ["ContractedUnitPrice", "SkuId", "SkuMeter", "SkuPriceId"];
    for (const row of rows) {
      const isUsage = row.ChargeCategory === "Usage";
      const isPurchase = row.ChargeCategory === "Purchase";
      expect(ofUsage.map((name) => row[name] !== "")).toEqual(ofUsage.map(() => isUsage));
      const isPriced = [...ofPrice, ...ofSku].map((name) => row[name] !== "");
      expect(isPriced).toEqual(isPriced.map(() => isUsage || isPurchase));
      expect(row.ChargeFrequency).toBe(isUsage ? "Usage-Based" : "One-Time");
      if (isUsage) {
        expect(row.PricingUnit).toMatch(/^(1000000 Tokens|Images|Requests)$/);
        expect([row.BilledCost, row.EffectiveCost]).toEqual(["0", row.ContractedCost]);
      } else expect([row.ListCost, row.ContractedCost]).toEqual([row.BilledCost, row.BilledCost]);
      if (isUsage || isPurchase) {
        const product = Number(row.ListUnitPrice) * Number(row.PricingQuantity);
        expect(product).toBeCloseTo(Number(row.ListCost), 12);
        expect(row.PricingCategory).toBe("Standard");
      }
      if (isPurchase) expect(row.EffectiveCost).toBe("0");
      if (row.ChargeCategory === "Credit") expect(row.EffectiveCost).toBe(row.BilledCost);
      const [start = "", end = ""] = [row.ChargePeriodStart, row.ChargePeriodEnd];
      expect(Date.parse(end) - Date.parse(start)).toBe(86_400_000);
      expect([start >= (row.BillingPeriodStart ?? ""), end <= (row.BillingPeriodEnd ?? "")]).toEqual([true, true]);
    }
  });

  test("has the list price of each meter, and costs that add up to the charges", () => {
    const usage = rows.filter((row) => row.ChargeCategory === "Usage" && row.BillingAccountId === keys[0]?.accountId);
    const ofMeter = words(
      "ChargePeriodStart SkuMeter ConsumedQuantity ConsumedUnit PricingQuantity PricingUnit ListUnitPrice ListCost EffectiveCost",
    );
    expect(usage.map((row) => ofMeter.map((name) => row[name]).join(" "))).toEqual([
      "2026-05-01T00:00:00Z Input Tokens 8 Tokens 0.000008 1000000 Tokens 0.25 0.000002 0.000002",
      "2026-05-01T00:00:00Z Output Tokens 4 Tokens 0.000004 1000000 Tokens 1.25 0.000005 0.000005",
      "2026-05-02T00:00:00Z Input Tokens 10 Tokens 0.00001 1000000 Tokens 0.25 0.0000025 0.000003",
    ]);
    expect(usage[0]).toMatchObject({
      ...{ SkuId: MODEL, SkuPriceId: `${MODEL}/1/input-tokens` },
      SkuPriceDetails: `{"x_Model":"${MODEL}","x_PriceVersion":"1"}`,
      ...{ ChargePeriodEnd: "2026-05-02T00:00:00Z", BillingPeriodStart: "2026-05-01T00:00:00Z" },
      ...{ BillingPeriodEnd: "2026-06-01T00:00:00Z", ProviderName: "vx", x_KeyId: keys[0]?.id, x_Requests: "2" },
    });
  });

  test("has the list price of the model for accounts with a discount or prices of their own", async () => {
    const { id, accountId } = await createTestKey(operator);
    const request = { accountId, model: MODEL, reason: "contract" };
    const tiers = [{ aboveInputTokens: 100n, input: 60_000n, output: 300_000n }];
    const own = { case: "prices", value: { input: 50_000n, output: 100_000n, tiers } } as const;
    await operator.setAccountPrices({ ...request, change: { case: "discountBps", value: 2_000 } });
    await operator.setAccountPrices({ ...request, change: own });
    const sum = { requests: 1, input: 1_000, output: 0 };
    await insertUsage(accountId, id, "2026-04-01T00:00Z", { ...sum, cost: 200, list: 1 });
    await insertUsage(accountId, id, "2026-04-02T00:00Z", { ...sum, cost: 60, list: 2, tier: 100 });
    const options = "--format focus --from 2026-04-01 --to 2026-05-01";
    const { rows } = parseCsv(await run(`usage export --account ${accountId} ${options}`));
    expect(rows).toMatchObject([
      { ListUnitPrice: "0.25", ListCost: "0.00025", ContractedUnitPrice: "0.2", EffectiveCost: "0.0002" },
      { ListUnitPrice: "0.25", ListCost: "0.00025", ContractedUnitPrice: "0.06", EffectiveCost: "0.00006" },
    ]);
  });

  test("has purchases, credits, corrections and expiries with their reasons", () => {
    const movements = rows.filter((row) => row.BillingAccountId === keys[0]?.accountId && row.ChargeCategory !== "Usage");
    const names = words("ChargeCategory ChargeClass BilledCost EffectiveCost ChargeDescription");
    expect(movements.map((row) => names.map((name) => row[name]))).toEqual([
      ["Purchase", "", "5", "0", `'=1+1, "gift"`],
      ["Adjustment", "Correction", "0", "1.5", "chargeback"],
    ]);
  });

  test("version 1.3 also names the providers of the service and of the host", async () => {
    const newer = parseCsv(await run(`usage export --format focus --focus-version 1.3 ${RANGE}`));
    expect(newer.header.filter((name) => !header.includes(name))).toEqual(["HostProviderName", "ServiceProviderName"]);
    const known = newer.header.filter((name) => !name.startsWith("x_"));
    expect(known).toEqual(known.toSorted());
    expect([rows[0]?.x_FocusVersion, newer.rows[0]?.x_FocusVersion]).toEqual(["1.2", "1.3"]);
    expect(newer.rows.map(({ ServiceProviderName: name }) => name)).toEqual(newer.rows.map(() => "vx"));
  });

  test("the purchases minus the effective costs are the balance, whatever moved it", async () => {
    const account = await createTestAccount(operator);
    const credit = (amountMicros: bigint, more: object) =>
      operator.creditAccount({ accountId: account, amountMicros, reason: "test", ...more });
    await credit(10_000_000n, { idempotencyKey: "paid" });
    await credit(3_000_000n, { idempotencyKey: "gift", promotional: true });
    const expiresAt = timestampFromDate(new Date(Date.now() + 86_400_000));
    await credit(2_000_000n, { idempotencyKey: "short", expiresAt });
    const back = { amountMicros: -1_250_000n, reason: "test", idempotencyKey: "x" };
    await operator.adjustAccount({ accountId: account, ...back });
    await app.database.owner`
      WITH expired AS (UPDATE vx.grants SET expires_at = now() - interval '1 second'
        WHERE account_id = ${account} AND expires_at < 'infinity' RETURNING expires_at)
      UPDATE vx.accounts SET grants_expire_at = (SELECT expires_at FROM expired) WHERE id = ${account}`;
    await app.database.owner`SELECT vx.expire_account_grants(vx.lane_of(${account}), ${account})`;
    const file = parseCsv(await run(`usage export --format focus --account ${account}`));
    expect(file.rows.map((row) => [row.ChargeCategory, row.BilledCost, row.EffectiveCost])).toEqual([
      ["Purchase", "10", "0"],
      ["Credit", "-3", "-3"],
      ["Purchase", "2", "0"],
      ["Adjustment", "0", "1.25"],
      ["Adjustment", "0", "2"],
    ]);
    const sum = (name: string, rows: readonly Record<string, string>[]) =>
      rows.reduce((total, row) => total + Number(row[name]), 0);
    const purchases = file.rows.filter((row) => row.ChargeCategory === "Purchase");
    const [row] = await app.database.owner`SELECT balance_micros FROM vx.accounts WHERE id = ${account}`;
    const balance = sum("BilledCost", purchases) - sum("EffectiveCost", file.rows);
    expect(balance).toBe(Number(row?.balance_micros) / 1e6);
  });
});

test("one account is exported, by its name too", async () => {
  await operator.updateAccount({ accountId: keys[1]?.accountId ?? "", name: "acme" });
  const { stdout, stderr } = await runWithNotes(`usage export --account acme ${RANGE}`);
  expect(stderr).toBe(`The account is ${keys[1]?.accountId}.\n`);
  const { rows } = parseCsv(stdout);
  expect(rows.map(({ account_id }) => account_id)).toEqual([keys[1]?.accountId, keys[1]?.accountId]);
});

test("show prints the usage as a table, and with --json as the response message", async () => {
  const groups = "--group-by day,model --tz Asia/Kathmandu";
  const table = await run(`usage show ${keys[0]?.accountId} ${RANGE} ${groups}`);
  expect(table.split("\n").slice(1, 3)).toEqual([
    expect.stringMatching(/^2026-05-01T00:00:00Z +acct_\S+ +test +vx-sandbox-small +2 +8 +4 +\$0\.000007$/),
    expect.stringMatching(/^2026-05-01T18:15:00Z .* 1 +10 +0 +\$0\.000003$/),
  ]);
  const json = JSON.parse(await run(`usage show ${RANGE} --group-by month --json`));
  expect(json).toMatchObject({ rows: [{ account_id: "", usage: { requests: 6, cost_micros: 20 } }] });
});

test("show sorts groups without a period by their cost, over all pages, and names the account of a key", async () => {
  const [first, second] = keys.map(({ accountId, id }) => ({ accountId, id })) as [TestKey, TestKey];
  const later = "--from 2026-07-01 --to 2026-08-01";
  const sum = { input: 1, output: 1 };
  await insertUsage(first.accountId, first.id, "2026-07-01T00:00Z", { ...sum, requests: 9, cost: 5 });
  await insertUsage(second.accountId, second.id, "2026-07-02T00:00Z", { ...sum, requests: 1, cost: 8 });
  const order = async (options: string) => {
    const lines = (await run(`usage show ${later} --group-by ${options}`)).split("\n").slice(1, -1);
    return lines.map((line) => keys.findIndex(({ id, accountId }) => line.includes(id) && line.includes(accountId)));
  };
  const inOrder = first.accountId < second.accountId ? [0, 1] : [1, 0];
  expect(await order("key")).toEqual([1, 0]);
  expect(await order("key --sort requests")).toEqual([0, 1]);
  expect(await order("key --sort start")).toEqual(inOrder);
  expect(await order("key --limit 1")).toEqual([1]);
  expect(await order("day,key")).toEqual([0, 1]);
  expect(await order("day,key --sort cost")).toEqual([1, 0]);
  const costs = async (options: string) => {
    const { rows } = JSON.parse(await run(`usage show ${later} --group-by key ${options} --json`));
    return rows.map(({ usage }: { usage: { cost_micros: number } }) => usage.cost_micros);
  };
  expect(await costs("--sort cost")).toEqual([8, 5]);
  expect(await costs("--sort cost --limit 1")).toEqual([8]);

  await app.database.owner`
    INSERT INTO vx.usage_quarters
    SELECT vx.lane_of(${first.accountId}), ${first.accountId}, ${Date.parse("2026-08-01T00:00Z") / QUARTER_MS}, ${first.id},
      ${MODEL}, 'user' || lpad(n::text, 4, '0'), 1, 1, 1, 0, 0, 1, 0, 0, 0, CASE WHEN n % 1000 = 999 THEN n ELSE 1 END
    FROM generate_series(1, 2500) n`;
  const users = "usage show --from 2026-08-01 --to 2026-09-01 --group-by user --limit 2";
  expect((await run(users)).match(/user\d+/g)).toEqual(["user1999", "user0999"]);
});

test("ledger list --csv prints all fields of all pages", async () => {
  const { header, rows } = parseCsv(await run(`ledger list ${keys[0]?.accountId} --csv`));
  expect(header.slice(0, 5)).toEqual(["id", "seq", "kind", "amount_micros", "amount"]);
  expect(rows.map(({ seq, amount, reason }) => [seq, amount, reason])).toEqual([
    ["2", "-$1.50", "chargeback"],
    ["1", "$5.00", `'=1+1, "gift"`],
  ]);
});

test("the progress bar is drawn on a terminal only, and erased at the end", () => {
  const draw = (isTTY: boolean) => {
    const pieces: string[] = [];
    const write = (piece: string) => pieces.push(piece) > 0;
    const progress = createProgress({ isTTY, write } as never);
    progress.show(0.5, "10 lines");
    progress.show(0.5, "10 lines");
    progress.show(1, "20 lines");
    progress.clear();
    return pieces.join("");
  };
  expect(draw(false)).toBe("");
  const erase = "\r\x1b[2K";
  expect(draw(true)).toBe(
    `${erase}[${"#".repeat(15)}${" ".repeat(15)}] 50 %  10 lines${erase}[${"#".repeat(30)}] 100 %  20 lines${erase}`,
  );
});
