import { readFileSync } from "node:fs";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath } from "../support/browser.ts";
import { createTestAccount, operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { generate } from "./account-data.ts";
import { MARKUP, OperatorConsole } from "./operator-console.ts";
import { APART, focused, REVERSED, REVERSING_NAME, violations } from "./page-checks.ts";

describe.skipIf(!chromiumPath)("the actions of the operator console", () => {
  let console: OperatorConsole;

  beforeAll(async () => {
    console = await OperatorConsole.start();
    await console.signIn();
  });
  afterAll(() => console?.stop());

  /** Opens a dialog, fills its fields, and submits it with the reason of its action. */
  async function perform(button: string, action: string | RegExp, fields: Record<string, string> = {}) {
    const { page } = console;
    await page.getByRole("main").getByRole("button", { name: button, exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").waitFor();
    for (const [label, value] of Object.entries(fields)) {
      const choice = dialog.getByRole("combobox", { name: label, exact: true });
      if ((await choice.count()) > 0) await choice.selectOption(value);
      else await dialog.getByLabel(label, { exact: true }).fill(value);
    }
    await dialog.getByLabel("Reason").fill(`because of ${button}`);
    await dialog.getByRole("button", { name: action, exact: true }).click();
    await dialog.getByLabel("Reason").waitFor({ state: "detached" });
  }

  async function openTab(name: string): Promise<void> {
    const tabs = console.page.getByRole("navigation", { name: "Parts of the account" });
    await tabs.getByRole("link", { name }).click();
    await console.loaded();
  }

  test("an account is created, credited, adjusted, edited, moved, suspended and resumed", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    await console.select("Accounts");
    await perform("Create account", "Create account", { Name: "acme", "E-mail address": "a@acme.example", Plan: "pro" });
    await page.getByRole("heading", { name: "acme" }).waitFor();
    await perform("Credit", "Credit $25.00", { Amount: "25" });
    await console.seen("$25.00");
    await perform("Adjust", "Adjust by -$0.500001", { Amount: "-0.500001" });
    await console.seen("$24.499999");
    await perform("Edit", "Save", { Name: MARKUP, "External id": "crm 1", Notes: "one\ntwo" });
    await page.getByRole("heading", { name: MARKUP }).waitFor();
    await perform("Change plan", "Change plan", { Plan: "scale" });
    await perform("Suspend", "Suspend account");
    await console.seen(/^Suspended since/);
    const suspended = (await operator.getAccount({ accountId: "crm 1" })).account;
    expect(suspended).toMatchObject({
      name: MARKUP,
      notes: "one\ntwo",
      email: "a@acme.example",
      plan: "scale",
      state: "suspended",
      balanceMicros: 24_499_999n,
    });
    await perform("Resume", "Resume account");
    await page.getByText(/^Suspended since/).waitFor({ state: "detached" });
    expect((await operator.getAccount({ accountId: "crm 1" })).account?.state).toBe("active");

    await openTab("Activity");
    await console.seen("because of Suspend");
    const changes = await page.getByRole("rowheader").getByRole("button").allInnerTexts();
    expect(changes).toEqual([
      `Resumed ${MARKUP}`,
      `Suspended ${MARKUP}`,
      `Changed the plan of ${MARKUP} to “scale”`,
      `Edited ${MARKUP} (name, external id, notes)`,
      `Adjusted ${MARKUP} by -$0.500001`,
      `Credited ${MARKUP} $25.00`,
      `Created ${MARKUP}`,
    ]);
    await openTab("Ledger");
    await console.seen("because of Adjust");
    expect(console.complaints).toEqual([]);
  });

  test("a key is created, with the secret shown once, limited and revoked", async () => {
    const { page, app } = console;
    await openTab("Keys");
    await perform("Create key", "Create key", { Name: "ci", "Requests per minute": "7", Expires: "7" });
    const dialog = page.getByRole("dialog", { name: "Save the new key" });
    const secret = (await dialog.locator("code").innerText()).trim();
    await page.keyboard.press("Escape");
    await dialog.getByRole("button", { name: "Done" }).click();
    const callWith = (text: string) => fetch(`${app.url}/v1/me`, { headers: { authorization: `Bearer ${text}` } });
    const call = () => callWith(secret);
    expect(await (await call()).json()).toMatchObject({ rate_limit_rpm: 7 });
    await console.seen("7/min");
    expect(await page.content()).not.toContain(secret);
    await perform("Edit ci", "Save", { "Requests per minute": "" });
    await console.seen("6,000/min");
    await perform("Rotate ci", "Rotate key", { "The present secret works for": "3600" });
    const rotation = page.getByRole("dialog", { name: "Save the new key" });
    await rotation.getByText(/^The previous secret works until/).waitFor();
    const rotated = (await rotation.locator("code").innerText()).trim();
    await rotation.getByRole("button", { name: "Done" }).click();
    for (const valid of [secret, rotated]) expect((await callWith(valid)).status).toBe(200);

    // It is found by the full key, which is masked before it is sent.
    await console.select("Keys");
    const search = page.getByRole("searchbox", { name: "Search keys" });
    await search.fill("another");
    await console.seen("No key matches the search");
    await search.fill(rotated);
    await page.getByRole("link", { name: MARKUP }).waitFor();
    await perform("Revoke ci", "Revoke key");
    await console.seen("revoked");
    for (const ended of [secret, rotated]) expect((await callWith(ended)).status).toBe(401);
    expect(console.complaints).toEqual([]);
  });

  test("a key has the limits and addresses of its form, and cannot be changed once it is revoked", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const accountId = await createTestAccount(operator);
    await page.goto(`${app.adminUrl}/#/accounts?id=${accountId}&tab=keys`);
    await console.loaded();
    await page.getByRole("button", { name: "Create key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("bounded");
    await dialog.getByLabel("Expires").selectOption("7");
    await dialog.getByLabel("Allowed addresses").fill("203.0.113.0/24, 2001:db8::1\n");
    for (const metric of ["cost", "concurrent", "tokens"]) {
      await dialog.getByRole("button", { name: "Add limit" }).click();
      await dialog.getByLabel("What is limited").last().selectOption(metric);
    }
    await dialog.getByRole("button", { name: "Remove limit 2" }).click();
    await dialog.getByLabel("Amount").first().fill("25");
    await dialog.getByLabel("Reason").fill("test");
    await dialog.getByRole("button", { name: "Create key" }).click();
    await dialog.getByText("Enter a whole number, such as 100,000.").waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog.getByLabel("Amount").last().fill("1,000");
    await dialog.getByLabel("Applies to").last().selectOption({ label: "Each end user separately" });
    await dialog.getByRole("button", { name: "Create key" }).click();
    await dialog.getByRole("button", { name: "Done" }).click();
    const keyOf = async () => (await operator.listKeys({ accountId })).apiKeys[0];
    const key = await keyOf();
    expect(key).toMatchObject({
      name: "bounded",
      allowedCidrs: ["203.0.113.0/24", "2001:db8::1/128"],
      limits: [
        { metric: "cost", window: "month", amount: 25_000_000n, per: "" },
        { metric: "tokens", window: "month", amount: 1_000n, per: "user" },
      ],
    });
    expect(key?.expiresAt).toBeDefined();

    await page.getByRole("link", { name: "bounded" }).click();
    await console.seen("203.0.113.0/24, 2001:db8::1/128");
    await perform("Edit bounded", "Save", { "Allowed addresses": "", Expires: "Never" });
    await page.getByText("2001:db8::1/128").waitFor({ state: "detached" });
    const edited = await keyOf();
    expect([edited?.allowedCidrs, edited?.expiresAt, edited?.limits.length]).toEqual([[], undefined, 2]);
    await page.getByRole("button", { name: "Set limit" }).waitFor();
    await perform("Revoke bounded", "Revoke key");
    await console.seen("revoked");
    await console.seen("Cost per month");
    const changes = page.getByRole("main").getByRole("button", { name: /^(Set|Change|Remove) / });
    await expect.poll(() => changes.count()).toBe(0);
    expect(console.complaints).toEqual([]);
  });

  test("limits of an account, a key and a plan are set, raised, changed and removed", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const { id, secret, accountId } = await createPaidKey(operator);
    const limitsOf = async (owner: { case: "accountId" | "keyId" | "plan"; value: string }) =>
      (await operator.listLimits({ owner })).limits.filter((limit) => limit.ownerId === owner.value);
    await page.goto(`${app.adminUrl}/#/accounts?id=${accountId}&tab=limits`);
    await console.seen("Requests per minute");

    // Invalid amounts are not sent.
    await page.getByRole("button", { name: "Set limit" }).click();
    const dialog = page.getByRole("dialog");
    await focused(page, "What is limited");
    await dialog.getByLabel("Amount", { exact: true }).fill("1.0000001");
    await dialog.getByLabel("Raised amount").fill("1");
    await dialog.getByRole("button", { name: "Set limit" }).click();
    await dialog.getByText("Enter an amount with at most 6 decimals").waitFor();
    await dialog.getByText("Enter a time in the future.").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });

    await perform("Set limit", "Set limit", { Amount: "$1,000.50" });
    await console.seen("Cost per month");
    await console.seen("$1,000.50 left");
    await generate(app, secret, "[[tokens=2000]]");
    // The page refreshes by itself.
    await console.seen(/^\$0\.00\d+ used · \$1,000\.\d+ left$/);
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "America/New_York" });
    await perform("Change Cost per month", "Set limit", { "Raised amount": "2000", "Raised until": "2099-01-31T12:00" });
    await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "" });
    await console.seen("$2,000.00");
    await console.seen(/^Raised from \$1,000\.50 until/);
    expect(await limitsOf({ case: "accountId", value: accountId })).toMatchObject([
      {
        ...{ metric: "cost", window: "month", amount: 1_000_500_000n, temporaryAmount: 2_000_000_000n },
        temporaryUntil: timestampFromDate(new Date("2099-01-31T12:00:00-05:00")),
      },
    ]);
    expect(await violations(page)).toEqual([]);

    // On the page of the key, the limits of its account and its plan are shown and cannot be changed.
    await page.goto(`${app.adminUrl}/#/keys?id=${id}`);
    await perform("Set limit", "Set limit", {
      "What is limited": "tokens",
      Window: "day",
      Amount: "100,000",
      "Applies to": "user",
    });
    // It counts what the day has already used.
    await console.seen(/^[\d,]+ used · 9\d,\d{3} left$/);
    await console.seen("each end user");
    expect(await page.getByRole("button", { name: /^Change / }).count()).toBe(1);
    await page.getByRole("link", { name: "Account", exact: true }).waitFor();
    await page.getByRole("row", { name: "Active keys" }).getByText("1 active").waitFor();
    expect(await limitsOf({ case: "keyId", value: id })).toMatchObject([
      { metric: "tokens", window: "day", per: "user", amount: 100_000n },
    ]);
    expect(await violations(page)).toEqual([]);
    await perform("Remove Tokens per day", "Remove limit");
    await page.getByRole("row", { name: "Tokens per day" }).waitFor({ state: "detached" });

    await console.select("Plans");
    await page.getByRole("link", { name: "scale", exact: true }).click();
    await perform("Set limit", "Set limit", { "What is limited": "concurrent", Amount: "50", Model: "vx-sandbox-small" });
    await console.seen("Running generations");
    expect(await limitsOf({ case: "plan", value: "scale" })).toMatchObject([
      { metric: "concurrent", window: "", amount: 50n, model: "vx-sandbox-small" },
    ]);
    await perform("Remove Running generations", "Remove limit");
    await console.seen("No limits");
    expect(console.complaints).toEqual([]);
  });

  test("an operator without the role sees limits and cannot set them", async () => {
    const { page, app } = console;
    const { secret } = await operatorOf(app).createOperator({ name: "vera", role: "viewer" });
    await console.signIn(secret, "/#/plans?name=pro");
    await page.getByRole("button", { name: "Set limit" }).click({ force: true });
    await console.seen("This needs the role “support”. Your role is “viewer”.");
    expect(await page.getByRole("dialog").count()).toBe(0);
    await console.signIn();
  });

  test("events of all accounts are filtered by account and by type", async () => {
    const { page, app } = console;
    const { accountId } = await createPaidKey(operatorOf(app));
    const others = await createPaidKey(operatorOf(app));
    await console.select("Events");
    await page.getByRole("combobox", { name: "Account" }).fill(accountId);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: others.accountId }).first().waitFor({ state: "detached" });
    const shown = () => page.getByRole("rowheader").getByRole("button").allInnerTexts();
    expect(await shown()).toEqual(["Credit of $10.00", "The key “test” was created"]);
    await page.getByLabel("Type").selectOption("key.created");
    await expect.poll(shown).toEqual(["The key “test” was created"]);
    expect(new URL(page.url()).hash).toBe(`#/events?account=${accountId}&type=key.created`);
    await page.getByLabel("Type").selectOption("price.changed");
    await console.seen("No events of this type");

    await page.goto(`${app.adminUrl}/#/accounts?id=${accountId}&tab=events`);
    await page.getByRole("button", { name: "Credit of $10.00" }).click();
    await page
      .getByRole("dialog")
      .getByText(/^invoice 1001$/)
      .waitFor();
    await page.keyboard.press("Escape");
    expect(console.complaints).toEqual([]);
  });

  test("plans and operators are created and changed, and the audit finds nothing", async () => {
    const { page, app } = console;
    await console.select("Plans");
    await perform("Create plan", "Create plan", { Name: "tiny", "Requests per minute": "5", "Active keys": "2" });
    await perform("Edit tiny", "Save", { "Requests per minute": "1234" });
    await console.seen("1,234");

    await console.select("Operators");
    await perform("Create operator", "Create operator", { Name: "ada", Role: "support" });
    const dialog = page.getByRole("dialog", { name: "Save the new token" });
    const token = (await dialog.locator("code").innerText()).trim();
    await dialog.getByRole("button", { name: "Done" }).click();
    expect((await operatorOf(app, token).listPlans({})).plans.map(({ name }) => name)).toContain("tiny");
    await perform("Change role of ada", "Change role", { Role: "finance" });
    await console.seen("The operator “ada” has the role “finance”.");
    await page.getByRole("row", { name: /ada/ }).getByRole("cell", { name: "finance", exact: true }).waitFor();
    await perform("Revoke ada", "Revoke operator");
    await console.seen("revoked");
    await expect(operatorOf(app, token).listPlans({})).rejects.toThrow();

    await console.select("Log");
    await page.getByLabel("Action", { exact: true }).selectOption({ label: "Set plan" });
    await expect.poll(() => page.getByRole("row").count()).toBe(3);
    const change = "Changed the plan “tiny”";
    await page.getByRole("button", { name: change }).first().click();
    await page.getByRole("dialog", { name: change }).getByText("because of Edit tiny").waitFor();
    await page.keyboard.press("Escape");
    // A browser without a window has no dialog to choose a file.
    await page.evaluate("delete globalThis.showSaveFilePicker");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const downloads = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download", exact: true }).click();
    const saved = readFileSync(await (await downloads).path(), "utf8")
      .trim()
      .split("\r\n");
    expect(saved).toEqual([
      expect.stringMatching(/^created_at,actor_id,.*,id$/),
      expect.stringMatching(/T[\d:.]+Z,break-glass,.*,PutPlan,tiny,.*,ok,because of Edit tiny,/),
      expect.stringMatching(/,PutPlan,tiny,/),
    ]);
    await page.getByLabel("Action", { exact: true }).selectOption("");
    await page.getByLabel("Object", { exact: true }).selectOption({ label: "Operator ada" });
    await expect
      .poll(() => page.getByRole("rowheader").getByRole("button").allInnerTexts())
      .toEqual([
        "Revoked the operator “ada”",
        "Changed the role of the operator “ada” to “finance”",
        "Created the operator “ada” with the role “support”",
      ]);

    await console.select("Audit");
    await page.getByRole("button", { name: "Run audit" }).click();
    await console.seen(/^Consistent/);
    expect(console.complaints).toEqual([]);
  });

  test("the prices of a model are shown with their history, and health is live", async () => {
    const { page } = console;
    await console.select("Models");
    await page.getByRole("button", { name: "All prices of vx-sandbox-small" }).click();
    await page.getByRole("dialog").getByText("Version 1").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("row", { name: "vx-sandbox-small" }).getByText("Healthy").waitFor();
    await console.select("Overview");
    await console.seen("Live");
    await console.seen("Healthy");
    expect(console.complaints).toEqual([]);
  });

  test("a change without a reason, or with values that are not valid, is not sent", async () => {
    const { page } = console;
    await console.select("Plans");
    await page.getByRole("button", { name: "Create plan" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("free");
    await dialog.getByRole("button", { name: "Create plan" }).click();
    await dialog.getByText("A plan with this name exists.").waitFor();
    await dialog.getByText("Write a reason").waitFor();
    await focused(page, "Name");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("an amount that the balance does not allow is refused before it is sent", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const { account } = await operator.createAccount({ name: "poor" });
    const accountId = account?.id ?? "";
    await operator.creditAccount({ accountId, amountMicros: 1_500_000n, reason: "test", idempotencyKey: "1" });
    await app.database.owner`UPDATE vx.accounts SET held_micros = 500000 WHERE id = ${accountId}`;
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.url()));
    await page.goto(`${app.adminUrl}/#/accounts?id=${accountId}`);
    await page.getByRole("button", { name: "Adjust", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await focused(page, "Amount");
    await dialog.getByLabel("Reason").fill("test");
    for (const [amount, error] of [
      ["-1.000001", "At most $1.00 can be subtracted."],
      ["0", "Enter an amount that is not 0."],
      ["0.0000001", "Enter an amount with at most 6 decimals"],
      ["9000000000", "A balance can be at most $9,000,000,000.00."],
    ] as const) {
      await dialog.getByLabel("Amount").fill(amount);
      await page.keyboard.press("Enter");
      await dialog.getByText(error).waitFor();
    }
    expect(sent.filter((url) => url.endsWith("/AdjustAccount"))).toEqual([]);
    await dialog.getByLabel("Amount").fill("-$1.00");
    await dialog.getByRole("button", { name: "Adjust by -$1.00" }).click();
    await dialog.waitFor({ state: "detached" });
    expect((await operator.getAccount({ accountId })).account?.balanceMicros).toBe(500_000n);
  });

  test("an account gets a discount with decimals", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const accountId = await createTestAccount(operator);
    await page.goto(`${app.adminUrl}/#/accounts?id=${accountId}`);
    await openTab("Prices");
    await perform("Set discount", "Set discount", { "Discount in percent": "12.5" });
    await console.seen(/has a discount of 12\.5 %/);
    expect((await operator.listAccountPrices({ accountId })).versions).toMatchObject([{ discountBps: 1_250 }]);
  });

  test("a credit whose response was lost is credited once when it is sent again", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    const { account } = await operator.createAccount({ name: "lost response" });
    const accountId = account?.id ?? "";
    await page.goto(`${app.adminUrl}/#/accounts?id=${accountId}`);
    await page.getByRole("button", { name: "Credit", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Amount").fill("5");
    await dialog.getByLabel("Reason").fill("test");
    const lose = async (route: Route) => {
      await route.fetch();
      await route.abort();
    };
    await page.route("**/CreditAccount", lose, { times: 1 });
    await dialog.getByRole("button", { name: "Credit $5.00" }).click();
    await dialog.getByRole("alert").waitFor();
    for (const amount of ["6", "5"]) await dialog.getByLabel("Amount").fill(amount);
    await dialog.getByRole("button", { name: "Credit $5.00" }).click();
    await dialog.waitFor({ state: "detached" });
    expect((await operator.getAccount({ accountId })).account?.balanceMicros).toBe(5_000_000n);
    expect(console.complaints.splice(0)).toEqual([expect.stringContaining("net::ERR_FAILED")]);
  });

  test("ids are copied by their buttons", async () => {
    const { page, app } = console;
    const { account } = await operatorOf(app).createAccount({ name: "copied" });
    await page.goto(`${app.adminUrl}/#/accounts?id=${account?.id}`);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy account id" }).first().click();
    await page.getByText("The account id is copied.").first().waitFor({ state: "attached" });
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(account?.id);

    await operatorOf(app).createKey({ accountId: account?.id ?? "", name: "copied", scopes: ["read", "keys"] });
    await openTab("Keys");
    await page.getByRole("button", { name: "Copy id of copied" }).waitFor();
    // Wide enough for a table, and too narrow for an id in one line.
    const size = page.viewportSize() ?? { width: 1280, height: 720 };
    await page.setViewportSize({ width: 1190, height: size.height });
    expect(await page.evaluate(APART)).toEqual([]);
    await page.setViewportSize(size);
    await openTab("Activity");
    await page.getByRole("button", { name: /^Created the key/ }).click();
    await page.getByRole("dialog").getByText("read, keys").waitFor();
    await page.keyboard.press("Escape");
  });

  test("the ledger shows the entries of all accounts, and those of a selected one", async () => {
    const { page, app } = console;
    const operator = operatorOf(app);
    for (const name of ["Bäckerei Nord", "Bäckerei Süd"]) {
      const { account } = await operator.createAccount({ name });
      const accountId = account?.id ?? "";
      await operator.creditAccount({ accountId, amountMicros: 25_000_000n, reason: `first ${name}`, idempotencyKey: "1" });
    }
    await console.select("Ledger");
    await console.seen("first Bäckerei Süd");
    await console.seen("first Bäckerei Nord");
    await page.getByRole("combobox", { name: "Account" }).click();
    await page.keyboard.type("bäckerei n");
    await page.getByRole("option", { name: "Bäckerei Nord" }).waitFor();
    await page.keyboard.press("Enter");
    await console.seen("Entries of");
    await page.getByText("first Bäckerei Süd").waitFor({ state: "detached" });
    await console.seen("first Bäckerei Nord");
    await page.getByRole("link", { name: "Bäckerei Nord" }).waitFor();
    await page.getByRole("combobox", { name: "Account" }).click();
    await page.getByRole("option", { name: "All accounts" }).click();
    await console.seen("first Bäckerei Süd");
    // Without the filters of an earlier test, which the link of the section keeps.
    await page.goto(`${app.adminUrl}/#/log`);
    await console.seen("Credited Bäckerei Nord $25.00");
  });

  test("all controls can be used with the keyboard, with a visible focus", async () => {
    const { page } = console;
    const { account } = await operatorOf(console.app).createAccount({ name: "keyboard" });
    await console.signIn();

    /** Presses Tab until the focus is on the element with this text or label. */
    async function tabTo(name: string): Promise<void> {
      for (let i = 0; i < 80; i++) {
        await page.keyboard.press("Tab");
        const focused = await page.evaluate<{ name: string; outline: string }>(`(() => {
          const { activeElement: one } = document;
          const name = one.ariaLabel || one.labels?.[0]?.textContent || one.textContent;
          return { name: name.trim(), outline: getComputedStyle(one).outlineStyle };
        })()`);
        if (focused.name !== name) continue;
        expect(focused.outline).toBe("solid");
        return;
      }
      throw new Error(`Tab does not reach ${name}`);
    }

    await tabTo("Accounts");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Accounts" }).waitFor();
    await tabTo("Search accounts");
    await page.keyboard.type("keyboard");
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await tabTo("keyboard");
    await page.keyboard.press("Enter");
    await console.seen("Held by running calls");
    await tabTo("Credit");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await focused(page, "Amount");
    await page.keyboard.type("12.5");
    await page.keyboard.press("Tab");
    await page.keyboard.type("by keyboard");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await console.seen("$12.50");
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Credit");
    const after = await operatorOf(console.app).getAccount({ accountId: account?.id ?? "" });
    expect(after.account?.balanceMicros).toBe(12_500_000n);
    expect(console.complaints).toEqual([]);
  });

  test("names do not reverse other texts", async () => {
    const { page, app } = console;
    const { account } = await operatorOf(app).createAccount({ name: REVERSING_NAME });
    await operatorOf(app).createKey({ accountId: account?.id ?? "", name: REVERSING_NAME });
    for (const section of ["Accounts", "Keys"]) {
      await console.select(section);
      await console.seen(/gnp\.exe/);
      expect(await page.evaluate(REVERSED)).toEqual([]);
    }
    await console.select("Accounts");
    await page.getByRole("link", { name: /gnp\.exe/ }).click();
    await page.getByRole("heading", { name: /gnp\.exe/ }).waitFor();
    expect(await page.evaluate(REVERSED)).toEqual([]);
    await perform("Suspend", "Suspend account");
    await console.seen(/is suspended/);
    expect(await page.evaluate(REVERSED)).toEqual([]);
  });
});
