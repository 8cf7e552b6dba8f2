import { readFileSync } from "node:fs";
import type { BrowserContext } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { APART, violations } from "./page-checks.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

if (!chromiumPath) console.error("SKIPPED: payments were tested in no browser.");

describe.skipIf(!chromiumPath)("payments on the customer page and in the console", () => {
  const profile = createTemporaryFolder("payments-browser");
  let stripe: FakeStripe;
  let app: TestApp;
  let key: TestKey;
  let browser: BrowserContext;
  let watched: WatchedPage;

  beforeAll(async () => {
    stripe = await FakeStripe.start();
    app = await startTestApp({ env: { ...stripe.env, VX_STRIPE_INVOICES: "on" } });
    key = await createTestKey(operatorOf(app), { scopes: ["read", "billing"] });
    browser = await openBrowser(profile.path);
    watched = await openWatchedPage(browser, [app.url, app.adminUrl]);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    await stripe?.stop();
    profile.remove();
  });

  async function signIn(secret: string): Promise<void> {
    const { page } = watched;
    await page.goto("about:blank");
    await page.goto(`${app.url}/account`);
    await page.getByLabel("API key").fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "Overview" }).waitFor();
  }

  test("a customer adds credit, pays in another tab, and sees the receipt and what is owed", async () => {
    const { page } = watched;
    await signIn(key.secret);
    await page.getByRole("link", { name: "Payments" }).click();
    await page.getByText("No payments").waitFor();
    await page.getByRole("button", { name: "Add credit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Amount").fill("12.345");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByText("at most two decimals").waitFor();
    await dialog.getByLabel("Amount").fill("12.50");
    await dialog.getByRole("button", { name: "Continue" }).click();
    const pay = page.getByRole("link", { name: "Pay $12.50" });
    await pay.waitFor();
    expect(await violations(page)).toEqual([]);
    const [row] = await app.database.owner<{ id: string }[]>`SELECT id FROM vx.topups`;
    const id = row?.id ?? "";
    expect(await pay.getAttribute("href")).toBe(stripe.sessionOf(id).url);
    const events = stripe.pay(id);
    const invoice = stripe.issueInvoice(id);
    for (const event of [...events, invoice]) expect(await stripe.deliver(event, app.url)).toBe(200);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("Credited").waitFor();
    await page.getByRole("link", { name: "Receipt" }).waitFor();
    const link = page.getByRole("link", { name: "Invoice", exact: true });
    expect(await link.getAttribute("href")).toBe(stripe.sessionOf(id).invoice?.hosted_invoice_url);
    expect(await link.getAttribute("target")).toBe("_blank");
    const adjustment = { amountMicros: -12_500_000n, reason: "used", idempotencyKey: "used" };
    await operatorOf(app).adjustAccount({ accountId: key.accountId, ...adjustment });
    expect(await stripe.deliver(stripe.refund(id, 1_250), app.url)).toBe(200);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("$12.50 is owed").waitFor();
    await page.getByRole("cell", { name: "Refunded" }).waitFor();
    expect(watched.complaints).toEqual([]);
  });

  test("a customer stores a card for automatic top-ups, lowers them, and stops them", async () => {
    const { page } = watched;
    const { accountId } = key;
    await operatorOf(app).putAutoTopUp({
      accountId,
      enabled: true,
      thresholdMicros: 5_000_000n,
      amountMicros: 10_000_000n,
      monthlyMaxMicros: 100_000_000n,
    });
    await signIn(key.secret);
    await page.getByRole("link", { name: "Payments" }).click();
    const link = page.getByRole("link", { name: "Store a payment method" });
    await link.waitFor();
    const setup = stripe.setupOf(accountId);
    expect(await link.getAttribute("href")).toBe(setup.url);
    expect(await violations(page)).toEqual([]);
    // The payment of the first one is under way: the balance is 0.
    expect(await stripe.deliver(stripe.storeCard(setup), app.url)).toBe(200);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("visa •••• 4242, expires 03/2031").waitFor();
    await page.getByRole("button", { name: "Change" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("At most per month").fill("100.01");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("A key can only lower it").waitFor();
    await dialog.getByLabel("At most per month").fill("40");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("of $40.00 at most").waitFor();
    await page.getByRole("button", { name: "Stop automatic top-ups" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    await page.getByText("The operator of this service can start them").waitFor();
    expect(watched.complaints).toEqual([]);
  });

  test("a statement shows the month in a form that can be printed", async () => {
    const { page } = watched;
    await signIn(key.secret);
    await page.getByRole("link", { name: "Statements" }).click();
    await page.getByRole("rowheader", { name: "Closing balance" }).waitFor();
    await page.getByRole("rowheader", { name: "Payment" }).first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download CSV" }).click(),
    ]);
    const lines = readFileSync(await download.path(), "utf8").split("\r\n");
    expect(lines[0]).toBe("kind,created_at,id,description,model,entries,input_tokens,output_tokens,amount_micros,amount");
    expect(lines.find((line) => line.startsWith("topup,"))).toMatch(/^topup,\d{4}-\S+Z,led_/);
    expect(await violations(page)).toEqual([]);
    await page.emulateMedia({ media: "print" });
    expect(await page.getByRole("link", { name: "Ledger" }).isVisible()).toBe(false);
    expect(await page.getByRole("rowheader", { name: "Closing balance" }).isVisible()).toBe(true);
    await page.emulateMedia({ media: "screen" });
    await page.getByRole("button", { name: "Previous month" }).click();
    await page.getByRole("cell", { name: "$0.00" }).first().waitFor();
    expect(watched.complaints).toEqual([]);
  });

  test("a key without the scope billing has no payments", async () => {
    const { page } = watched;
    const { secret } = await createTestKey(operatorOf(app), { accountId: key.accountId, scopes: ["read"] });
    await signIn(secret);
    await page.getByRole("link", { name: "Ledger" }).waitFor();
    expect(await page.getByRole("link", { name: "Payments" }).count()).toBe(0);
  });

  async function openConsole(path: string, token = OPERATOR_TOKEN): Promise<void> {
    const { page } = watched;
    await page.goto("about:blank");
    await page.goto(`${app.adminUrl}/#/${path}`);
    await page.getByLabel("Operator token").fill(token);
    await page.keyboard.press("Enter");
  }

  test("operators see payments and their ledger entries, and change automatic top-ups if their role permits it", async () => {
    const { page } = watched;
    const { accountId } = key;
    const hash = () => new URL(page.url()).hash;
    const shown = page.getByRole("rowheader");
    await openConsole("payments");
    await page.getByLabel("State").selectOption("Refunded");
    await page.getByText("$12.50 refunded").waitFor();
    expect(await shown.count()).toBe(1);
    await page.getByLabel("State").selectOption("Needs attention");
    await page.getByText("No payments in this state").waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "Entry" }).click();
    await page.getByRole("button", { name: /^Top-up top_/ }).waitFor();
    expect(hash()).toMatch(/^#\/ledger\?entry=led_/);
    await page.goBack();
    await page.locator("main").getByRole("link", { name: "test" }).click();
    await page.getByRole("button", { name: "Start automatic top-ups" }).waitFor();
    expect(await page.evaluate(APART)).toEqual([]);
    expect(hash()).toBe(`#/accounts?id=${accountId}&tab=payments`);

    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.getByRole("button", { name: "Start automatic top-ups" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Top up when the balance is below").fill("5");
    await dialog.getByLabel("Amount").fill("20");
    await dialog.getByLabel("At most per month").fill("60");
    await page.keyboard.press("Enter");
    await dialog.getByText("Write a reason").waitFor();
    await dialog.getByLabel("Reason").fill("agreed by phone");
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.getByText("of $60.00 at most").waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(await violations(page)).toEqual([]);
    const { events } = await operatorOf(app).listOperatorEvents({ accountId, method: "PutAutoTopUp" });
    expect(events[0]).toMatchObject({ reason: "agreed by phone", outcome: "ok" });

    const { secret } = await operatorOf(app).createOperator({ name: "vera", role: "viewer" });
    await openConsole(`accounts?id=${accountId}&tab=payments`, secret);
    await page.getByRole("button", { name: "Stop automatic top-ups" }).click({ force: true });
    await page.getByText("This needs the role “finance”. Your role is “viewer”.").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(watched.complaints).toEqual([]);
  });
});
