import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath } from "../support/browser.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey } from "../support/openai.ts";
import { generate } from "./account-data.ts";
import { OperatorConsole } from "./operator-console.ts";
import { BRIGHTNESS, focused, outside, violations } from "./page-checks.ts";

const MODELS = `models:
  - id: vx-sandbox-small
    context_window: 8192
    max_output_tokens: 2048
    input_micros_per_million_tokens: 250000
    output_micros_per_million_tokens: 1250000
    upstream: {kind: sandbox}
  - id: acme-large
    context_window: 400000
    max_output_tokens: 64000
    prices:
      {input: 3000000, cached_input: 300000, cache_write: 3750000, cache_write_1h: 6000000, output: 15000000, image: 1000,
       tiers: [{above_input_tokens: 200000, input: 6000000, output: 22500000}]}
    upstream: {kind: sandbox, cost: {input: 2000000, output: 9000000}}
`;

/** The last one is that in which the tests work. */
const LOOKS = [
  { width: 390, scheme: "dark" },
  { width: 1280, scheme: "light" },
] as const;

/** Lists follow after a call to the server, which takes longer on a busy machine. */
function eventually<Value>(read: () => Value) {
  return expect.poll(read);
}

describe.skipIf(!chromiumPath)("the lists and corrections of the operator console", () => {
  let console: OperatorConsole;
  const models = createModelsFile(MODELS);

  beforeAll(async () => {
    console = await OperatorConsole.start({ VX_MODELS: models.path });
  });
  afterAll(async () => {
    await console?.stop();
    models.remove();
  });

  async function open(path: string): Promise<void> {
    await console.signIn(undefined, `/#/${path}`);
    await console.loaded();
  }

  /** The page fits narrow and wide windows, has the colors of the setting, and can be used by everyone. */
  async function expectUsable(): Promise<void> {
    const { page } = console;
    for (const { width, scheme } of LOOKS) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      const brightness = await page.evaluate<number>(BRIGHTNESS);
      expect(scheme === "dark" ? brightness < 0.2 : brightness > 0.8).toBe(true);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      expect(await outside(page, "main :not(.tabs a)")).toEqual([]);
      expect(await violations(page)).toEqual([]);
    }
    expect(console.complaints).toEqual([]);
  }

  const names = () => console.page.getByRole("rowheader").getByRole("link").allInnerTexts();

  test("accounts are sorted by name, balance and spend, and filtered by state and balance", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const prefix = "sorted";
    for (const [name, micros] of [
      ["poor", 1_000_000n],
      ["rich", 9_000_000_000n],
      ["idle", 0n],
    ] as const) {
      const key = await createTestKey(operator);
      const { accountId } = key;
      await operator.updateAccount({ accountId, name: `${prefix} ${name}` });
      const credit = { accountId, reason: "test", idempotencyKey: "1" };
      if (micros > 0n) await operator.creditAccount({ ...credit, amountMicros: micros });
      if (name === "poor") await generate(app, key.secret, "[[tokens=2000]]");
      if (name === "idle") await operator.suspendAccount({ accountId, reason: "test" });
    }
    await app.database.owner`SELECT vx.refresh_figures(0::smallint, 1023::smallint)`;
    const shown = async () => (await names()).filter((name) => name.startsWith(prefix));
    await open("accounts");
    await eventually(shown).toEqual(["idle", "rich", "poor"].map((name) => `${prefix} ${name}`));

    // By keyboard: the second order is that of the names.
    await page.getByLabel("Order").focus();
    await page.keyboard.press("ArrowDown");
    await eventually(shown).toEqual(["idle", "poor", "rich"].map((name) => `${prefix} ${name}`));
    await expectUsable();
    await page.getByLabel("Order").selectOption("Highest balance first");
    await eventually(async () => (await shown())[0]).toBe(`${prefix} rich`);
    await page.getByLabel("Order").selectOption("Most spent today");
    await eventually(shown).toEqual([`${prefix} poor`]);
    await console.seen("$0.002503");
    await page.getByLabel("Order").selectOption("Name");
    await page.getByLabel("State").selectOption("Suspended");
    await eventually(shown).toEqual([`${prefix} idle`]);
    await page.getByLabel("State").selectOption("All states");
    await eventually(shown).toHaveLength(3);

    // A balance needs an order by balance, which it selects.
    await page.getByLabel("Balance below").fill("1.50");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await eventually(shown).toEqual([`${prefix} idle`, `${prefix} poor`]);
    expect(new URL(page.url()).hash).toBe("#/accounts?sort=lowest_balance&below=1.50");
    await page.getByLabel("Balance below").fill("much");
    await page.keyboard.press("Tab");
    await page.getByText("Enter an amount above 0, such as 5.00.").waitFor();
    await expectUsable();
    await page.goBack();
    await eventually(shown).toEqual([`${prefix} idle`, `${prefix} poor`]);
    await page.getByLabel("Order").selectOption("Most spent this month");
    await page.getByLabel("State").selectOption("Closed");
    await console.seen("No account matches the filters");
    await page.getByRole("link", { name: "Show all accounts" }).click();
    await eventually(shown).toHaveLength(3);
    await page.getByRole("searchbox").fill(`${prefix} rich`);
    await eventually(names).toEqual([`${prefix} rich`]);
    expect(await page.getByLabel("Order").count()).toBe(0);
  });

  test("keys that were not used for 30 days are listed and revoked, and plans have counts", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const plan = "counted";
    await operator.putPlan({ name: plan, rpm: 10, maxActiveKeys: 5 });
    const { id, accountId } = await createTestKey(operator, { name: "old key", plan });
    await createTestKey(operator, { name: "new key", accountId, plan });
    await app.database.owner`UPDATE vx.keys SET created_at = created_at - interval '40 days' WHERE id = ${id}`;
    await open("plans");
    const cells = page.getByRole("row", { name: plan }).getByRole("cell");
    await eventually(async () => (await cells.allInnerTexts()).slice(0, 2)).toEqual(["1", "2"]);
    await expectUsable();
    await open("keys");
    await page.getByLabel("Use").selectOption("Active, not used for 90 days");
    await console.seen("Every active key was used or created in the last 90 days");
    await page.getByLabel("Use").selectOption("Active, not used for 30 days");
    await eventually(names).toContain("old key");
    expect(await names()).not.toContain("new key");
    await expectUsable();
    await page.getByRole("button", { name: "Revoke old key" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("not used");
    await page.keyboard.press("Enter");
    await console.seen("The key “old key” is revoked.");
    await eventually(names).not.toContain("old key");
  });

  test("a generation is refunded from its entry: a part, then the rest, and never more", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const { accountId, secret } = await createPaidKey(operator);
    await generate(app, secret, "[[tokens=2000]]");
    const balance = async () => (await operator.getAccount({ accountId })).account?.balanceMicros;
    expect(await balance()).toBe(9_997_497n);
    await open(`accounts?id=${accountId}&tab=ledger`);
    const refund = async (amount: string) => {
      await page
        .getByRole("button", { name: /^Generation with/ })
        .last()
        .click();
      await page.getByRole("button", { name: "Refund", exact: true }).click();
      await focused(page, "Amount");
      await page.keyboard.type(amount);
      await page.keyboard.press("Tab");
      await page.keyboard.type("a bad reply");
    };
    await refund("0.01");
    await page.keyboard.press("Enter");
    await page.getByText("Enter at most $0.002503, or nothing.").waitFor();
    await expectUsable();
    await page.getByRole("dialog").last().getByLabel("Amount").fill("0.002");
    await page.keyboard.press("Enter");
    await console.seen("$0.002 is refunded.");
    expect(await balance()).toBe(9_999_497n);
    await refund("");
    await page.keyboard.press("Enter");
    await console.seen("$0.000503 is refunded.");
    expect(await balance()).toBe(10_000_000n);
    await refund("");
    await page.keyboard.press("Enter");
    await page
      .getByText(/^at most|can be refunded/)
      .first()
      .waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    expect(console.complaints.splice(0)).toEqual([expect.stringContaining("400 (Bad Request)")]);
    // Credits have no charge.
    await page.getByRole("button", { name: "invoice 1001" }).click();
    await page.getByRole("dialog").getByText("Entry id").waitFor();
    expect(await page.getByRole("button", { name: "Refund", exact: true }).count()).toBe(0);
  });

  test("an account is closed after its export is confirmed and its name is typed", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const { accountId, secret } = await createPaidKey(operator);
    await operator.updateAccount({ accountId, name: "Bäckerei Nord" });
    await open(`accounts?id=${accountId}`);
    await page.getByRole("button", { name: "Close account" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Revoked keys").waitFor();
    await dialog.getByText(`vx accounts export ${accountId} --output ${accountId}.tar.gz`).waitFor();
    await dialog.getByLabel("Name of the account").fill("Bäckerei");
    await dialog.getByLabel("Reason").fill("the customer left");
    await page.keyboard.press("Enter");
    await dialog.getByText("Enter the name of the account.").waitFor();
    await dialog.getByText("Export the account first, or say that it is not needed.").waitFor();
    await dialog.getByText("Say what becomes of the balance.").waitFor();
    await expectUsable();
    expect((await operator.getAccount({ accountId })).account?.state).toBe("active");
    await dialog.getByLabel("The account is exported, or its data is not needed").check();
    await dialog.getByLabel(/^What becomes of the balance/).selectOption("The customer got it back");
    await dialog.getByLabel("Name of the account").fill("Bäckerei Nord");
    // The account is closed once its running call has ended.
    const running = generate(app, secret, "[[tokens=8 delay_ms=1500]]");
    await expect.poll(async () => (await operator.getAccount({ accountId })).account?.heldMicros).toBeGreaterThan(0n);
    await page.keyboard.press("Enter");
    await console.seen("“Bäckerei Nord” is closed.");
    await running;
    await console.seen(/^Closed on/);
    expect(await page.getByRole("button", { name: "Close account" }).count()).toBe(0);
    expect((await operator.getAccount({ accountId })).account).toMatchObject({
      state: "closed",
      name: "closed",
      balanceMicros: 0n,
    });
    const { entries } = await operator.listLedgerEntries({ accountId });
    expect(entries[0]).toMatchObject({ kind: "refund", balanceAfterMicros: 0n });
    const headers = { authorization: `Bearer ${secret}` };
    expect((await fetch(`${app.url}/v1/me`, { headers })).status).toBe(401);
    await expectUsable();
  });

  test("an entry is found by the id of its generation, among all accounts and in its own", async () => {
    const { page, app } = console;
    const { accountId, secret } = await createPaidKey(operatorOf(app));
    await operatorOf(app).updateAccount({ accountId, name: "found" });
    await generate(app, secret, "[[tokens=2000]]");
    const { entries } = await operatorOf(app).listLedgerEntries({ accountId });
    const id = entries[0]?.generationId ?? "";
    for (const path of ["ledger", `accounts?id=${accountId}&tab=ledger`]) {
      await open(path);
      const search = page.getByRole("searchbox", { name: "Find an entry by its id" });
      await search.fill(id);
      await eventually(() => page.getByRole("rowheader").count()).toBe(1);
      await page.getByRole("button", { name: /^Generation with/ }).click();
      await page.getByRole("dialog").getByText(id).waitFor();
      await page.keyboard.press("Escape");
      await expectUsable();
      await search.fill(`gen_${"0".repeat(26)}`);
      await console.seen("No entry has this id");
      await search.fill("invoice");
      await console.seen("No entry has this id");
    }
  });

  test("the page of anything with an id is found, and so is that of an account by its name", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const key = await createPaidKey(operator);
    const { accountId } = key;
    await operator.updateAccount({ accountId, name: "Anything else" });
    await generate(app, key.secret, "[[tokens=2000]]");
    const { webhook } = await operator.createWebhook({ accountId, url: "https://hooks.example.com", reason: "test" });
    const [entry] = (await operator.listLedgerEntries({ accountId })).entries;
    const [event] = (await operator.listEvents({ accountId })).events;
    const generationId = entry?.generationId ?? "";
    await open("overview");
    const find = async (text: string) => {
      const menu = page.getByRole("button", { name: "Menu" });
      if (await menu.isVisible()) await menu.click();
      await page.getByRole("combobox", { name: "Find" }).fill(text);
      await page.keyboard.press("Enter");
      return () => new URL(page.url()).hash;
    };
    await eventually(await find("thing else")).toBe(`#/accounts?id=${accountId}`);
    await page.getByRole("heading", { name: "Anything else" }).waitFor();
    await eventually(await find(key.id)).toBe(`#/keys?id=${key.id}`);
    await eventually(await find(webhook?.id ?? "")).toBe(`#/webhooks?id=${webhook?.id}&account=${accountId}`);
    await page.getByRole("heading", { name: "https://hooks.example.com" }).waitFor();
    await eventually(await find(event?.id ?? "")).toBe(`#/accounts?id=${accountId}&tab=events`);
    for (const id of [entry?.id ?? "", generationId]) {
      await eventually(await find(id)).toBe(`#/ledger?entry=${id}`);
      await eventually(() => page.getByRole("rowheader").count()).toBe(1);
      await page.getByRole("button", { name: /^Generation with/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(generationId).waitFor();
      await page.keyboard.press("Escape");
      // Then the focus is back on the button.
      await dialog.waitFor({ state: "detached" });
    }
    await find("there is no such account");
    await console.seen("No account matches");
    await expectUsable();
  });

  test("filters are kept when the operator comes back to a page, until its link is clicked again", async () => {
    const { page, app } = console;
    const { accountId } = await createPaidKey(operatorOf(app));
    const hash = () => new URL(page.url()).hash;
    await open("usage");
    await page.getByLabel("Range").selectOption("Last 7 days");
    await eventually(hash).toMatch(/^#\/usage\?from=.*&to=/);
    const usage = hash();
    await console.select("Log");
    await page.getByLabel("Action").selectOption({ index: 1 });
    await eventually(hash).toMatch(/^#\/log\?method=/);
    const log = hash();
    await console.select("Accounts");
    await page.getByLabel("Order").selectOption("Name");
    await eventually(hash).toBe("#/accounts?sort=name");
    // If the address changes twice before the page handles the first change, the page sees only the second.
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    await page.goto(`${app.adminUrl}/#/accounts?id=${accountId}&tab=failures`);
    await page.getByLabel("Error", { exact: true }).selectOption("Model failed");
    await eventually(hash).toMatch(/&code=upstream_error$/);
    await page.getByRole("link", { name: "Ledger" }).last().click();
    await page.getByLabel("Kind").selectOption("credit");
    await eventually(hash).toMatch(/&kind=credit$/);
    await page.getByRole("navigation", { name: "Parts" }).getByRole("link", { name: "Failures" }).click();
    await eventually(hash).toBe(`#/accounts?id=${accountId}&tab=failures&code=upstream_error`);
    await page.getByRole("navigation", { name: "Parts" }).getByRole("link", { name: "Ledger" }).click();
    await eventually(hash).toBe(`#/accounts?id=${accountId}&tab=ledger&kind=credit`);

    await console.select("Log");
    expect(hash()).toBe(log);
    await console.select("Usage");
    expect(hash()).toBe(usage);
    await console.select("Accounts");
    expect(hash()).toBe("#/accounts?sort=name");
    await console.select("Accounts");
    expect(hash()).toBe("#/accounts");
    await expectUsable();
  });

  test("the page of audits shows when the last one ran, its result and the schedule", async () => {
    const { page } = console;
    await open("audit");
    await page.getByRole("button", { name: "Run audit" }).click();
    await console.seen(/^Consistent: the audit found no difference/);
    const last = page.getByRole("region", { name: "Last audit" });
    await last.getByText("Consistent", { exact: true }).waitFor();
    await last.getByText(/^\d+ seconds?, \d+ ledger entries$/).waitFor();
    await last.getByText("None: set VX_AUDIT_HOURS to audit regularly.").waitFor();
    await expectUsable();
  });

  test("models have all prices: tiers, writes to the cache, and the cost of the upstream", async () => {
    const { page } = console;
    await open("models");
    const model = page.getByRole("row", { name: "acme-large" });
    await model.getByText("$22.50 above 200,000").waitFor();
    await model.getByText("$6.00 write to the cache for an hour").waitFor();
    await model.getByText("Cost", { exact: true }).click();
    await model.getByText("$9.00").first().waitFor();
    await expectUsable();
    await page.getByRole("button", { name: "All prices of acme-large" }).click();
    await page.getByRole("dialog").getByText("Version 1").waitFor();
    await expectUsable();
  });

  test("roles are explained with what each may do, and limits of operators are marked", async () => {
    const { page, app } = console;
    await open("operators");
    const roles = page.getByRole("region", { name: "Roles" });
    await roles.getByText(/Refund entry/).waitFor();
    await roles.getByText(/Suspend account/).waitFor();
    await expectUsable();
    const { accountId } = await createPaidKey(operatorOf(app));
    await operatorOf(app).setLimit({
      owner: { case: "accountId", value: accountId },
      limit: { metric: "cost", window: "month", amount: 5_000_000n },
    });
    await open(`accounts?id=${accountId}&tab=limits`);
    await console.seen("set by the operator");
    await expectUsable();
  });
});
