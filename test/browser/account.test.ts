import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { BrowserContext, Download, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { anthropicClients } from "../../src/domain/anthropic-clients.ts";
import { formatMicros } from "../../src/domain/money.ts";
import { BUILT_IN_MODELS } from "../../src/models/built-in.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { createFullAccount, type FullAccount, generate, HOSTILE_NAME, insertCharge } from "./account-data.ts";
import {
  BRIGHTNESS,
  CUT_OFF,
  outside,
  overlapping,
  RESIZED,
  REVERSED,
  REVERSING_NAME,
  STORED,
  violations,
} from "./page-checks.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

if (!chromiumPath) {
  console.error("SKIPPED: the customer page was tested in no browser. Install chromium, or name one in CHROMIUM.");
}

const run = promisify(execFile);
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

/** The sections, and what they show when they are loaded; a chart without such a text. */
const SHOWN: readonly [section: string, text?: string][] = [
  ["Overview"],
  ["Ledger", "invoice 28"],
  ["Failures", "Model failed"],
  ["Events", "Credit of"],
  ["Limits", "Requests per minute"],
  ["API keys", HOSTILE_NAME],
];

describe.skipIf(!chromiumPath)("the customer page", () => {
  const profile = createTemporaryFolder("account-browser");
  let app: TestApp;
  let account: FullAccount;
  let browser: BrowserContext;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    app = await startTestApp({ env: { VX_PRODUCT_NAME: "Acme AI", VX_SUPPORT_URL: "https://help.example.com" } });
    account = await createFullAccount(app);
    browser = await openBrowser(profile.path);
    watched = await openWatchedPage(browser, [app.url]);
    page = watched.page;
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    profile.remove();
  });
  beforeEach(async () => {
    await page.setViewportSize(DESKTOP);
  });

  const button = (name: string | RegExp) => page.getByRole("button", { name });
  const link = (name: string) => page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name });
  /** In a narrow window, the sections are in a menu. */
  async function select(section: string): Promise<void> {
    if (await button("Menu").isVisible()) await button("Menu").click();
    await link(section).click();
  }
  const dialog = () => page.getByRole("dialog");
  const inDialog = (name: string) => dialog().getByRole("button", { name });
  const chart = () => page.getByRole("img", { name: /by day and/ });
  const figure = (name: string) => page.locator(".stat", { hasText: name }).locator(".stat-value");
  const hash = () => new URL(page.url()).hash;

  async function open(hash = ""): Promise<void> {
    await page.goto("about:blank");
    await page.goto(`${app.url}/account${hash}`);
  }

  async function signIn(secret: string, hash = ""): Promise<void> {
    await open(hash);
    await page.getByLabel("API key").fill(secret);
    await button("Sign in").click();
    await link("Overview").waitFor();
  }

  async function see(text: string | RegExp): Promise<void> {
    await page.getByText(text).filter({ visible: true }).first().waitFor();
  }

  // Colors do not depend on the width.
  describe.each([
    { ...DESKTOP, colorScheme: "light" },
    { ...PHONE, colorScheme: "dark" },
  ] as const)("$width px, $colorScheme", ({ width, height, colorScheme }) => {
    beforeEach(async () => {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
    });

    /** The view fits the window, has the colors of the setting and violates no rule of accessibility. */
    async function expectView(elements: string): Promise<void> {
      const brightness = await page.evaluate<number>(BRIGHTNESS);
      expect(brightness).toSatisfy((value: number) => (colorScheme === "dark" ? value < 0.2 : value > 0.8));
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      expect(await outside(page, elements)).toEqual([]);
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
      expect(await violations(page)).toEqual([]);
    }

    test("all views fit the window and are accessible", async () => {
      await open();
      await page.getByLabel("API key").waitFor();
      await expectView("body *");
      await page.getByLabel("API key").fill(account.secret);
      await button("Sign in").click();
      await chart().waitFor();
      await expectView(`main :not(.uplot *), header *`);
      expect(await overlapping(page, "main", "button, a, .segmented label, h1, h2, dd")).toEqual([]);

      await page.getByText("Show as table").click();
      await page.getByRole("table", { name: "Cost by day and model" }).waitFor();

      // Without the rules of accessibility, which take seconds for tables of this size.
      await select("Usage");
      await page.getByLabel("Range").selectOption("Last 3 days");
      await page.getByText("By end user").click();
      await page.getByRole("table", { name: "Usage by end user" }).waitFor();
      await page.getByText("Show as table").click();
      await page.getByRole("table", { name: "Cost by hour and end user" }).waitFor();
      expect(await outside(page, "main :not(.uplot *)")).toEqual([]);
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);

      await select("Ledger");
      await page.locator(".link-button").first().waitFor();
      await expectView("main *");
      await page.locator(".link-button").first().click();
      await dialog().waitFor();
      await expectView("dialog *");
      await page.keyboard.press("Escape");

      await select("Failures");
      await see("41,234 more calls failed in this minute");
      await page.getByText("Show as table").click();
      await expectView("main *");
      await page.locator(".link-button").last().click();
      await dialog().waitFor();
      await expectView("dialog *");
      await page.keyboard.press("Escape");

      await select("Events");
      await see("Credit of $0.035787");
      await expectView("main *");
      await page.locator(".link-button").first().click();
      await dialog().getByText("Show as JSON").click();
      await expectView("dialog *");
      await page.keyboard.press("Escape");

      await select("Limits");
      await see("Requests per minute");
      await expectView("main *");

      await select("API keys");
      await button(`Revoke ${HOSTILE_NAME}`).waitFor();
      await expectView("main *");
      await button("Create key").click();
      await dialog().waitFor();
      await expectView("dialog *");
      await page.keyboard.press("Escape");
      await button(`Revoke ${HOSTILE_NAME}`).click();
      await dialog().waitFor();
      await expectView("dialog *");
    });
  });

  test("every section fits windows of every width", async () => {
    await signIn(account.secret);
    for (const [section, text] of SHOWN) {
      await page.setViewportSize(DESKTOP);
      await select(section);
      await (text === undefined ? chart().waitFor() : see(text));
      for (const width of [320, 600, 768, 899, 900, 1024, 1150, 1600]) {
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(RESIZED);
        expect([section, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([section, width]);
        expect(await outside(page, `main :not(.uplot *), header *`)).toEqual([]);
        expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
      }
    }
  });

  test("failures are counted by error and day and filtered by a bar, error, key and day, page by page, also with the keyboard", async () => {
    await signIn(account.secret, "#/failures");
    const counts = page.getByRole("table", { name: "Failed calls by error" });
    const rows = page.getByRole("table", { name: "Failed calls", exact: true }).getByRole("row");
    await counts.waitFor();
    const texts = await counts.getByRole("row").allInnerTexts();
    const cells = (row: string) => row.split(/\s*\t\s*/).map((text) => text.trim());
    expect(texts.slice(1).map(cells)).toEqual([
      ["Not listed", "41,234"],
      ["Model failed", "20"],
      ["Balance too low", "10"],
    ]);
    await counts.getByRole("button", { name: "Balance too low" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => rows.count()).toBe(1 + 10 + 1);
    expect(new URL(page.url()).hash).toBe("#/failures?code=insufficient_balance");
    expect(await counts.getByRole("row").count()).toBe(1 + 3);
    await counts.getByRole("button", { name: "Balance too low", pressed: true }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/failures");
    await page.getByText("Show as table").click();
    const days = page.getByRole("table", { name: "Failed calls by day and error" });
    expect(await days.getByRole("row").count()).toBe(1 + 7);
    const filled = (table: Locator) => table.getByRole("row").filter({ hasText: "41,234" }).getByRole("button");
    await filled(days).click();
    await see("Choose a bar to see its hour.");
    const hours = page.getByRole("table", { name: "Failed calls by hour and error" });
    const listed = page.waitForRequest((request) => request.url().endsWith("/ListFailures"));
    await filled(hours).click();
    const { from, to } = (await listed).postDataJSON() as { from: string; to: string };
    expect(Date.parse(to) - Date.parse(from)).toBe(3_600_000);
    await expect.poll(() => new URL(page.url()).hash).toMatch(/^#\/failures\?from=[\d-]+T\d\d%3A00&to=[\d-]+$/);
    await button("Back to the day").click();
    await button("Back to 7 days").click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/failures");
    await expect.poll(() => rows.count()).toBe(1 + 25);
    await button("Next").click();
    await see("Page 2");
    await expect.poll(() => rows.count()).toBe(1 + 6);
    await page.getByLabel("Error", { exact: true }).selectOption("Balance too low");
    await expect.poll(() => rows.count()).toBe(1 + 10 + 1);
    expect(new URL(page.url()).hash).toBe("#/failures?code=insufficient_balance");
    await rows.getByRole("button", { name: "Balance too low" }).first().click();
    await dialog().getByText("POST /v1/generate", { exact: true }).waitFor();
    await dialog().getByText("req_3", { exact: true }).waitFor();
    expect(await dialog().innerText()).not.toContain("10.0.0.7");
    await page.keyboard.press("Escape");
    await page.getByLabel("Until").fill("2020-01-01");
    await see("No calls match the filters");
    await page.getByRole("link", { name: "Show all failed calls" }).click();
    await page.getByLabel("Key").selectOption(account.id);
    await expect.poll(() => rows.count()).toBe(1 + 25);
  });

  describe("the overview", () => {
    test("shows the exact balance and sums, the same in the table, under the pointer and as CSV, by choices that are in the address", async () => {
      await signIn(account.secret);
      await chart().waitFor();
      const get = async (path: string) => {
        const headers = { authorization: `Bearer ${account.secret}` };
        return await (await fetch(`${app.url}${path}`, { headers })).json();
      };
      const from = `${new Date(Date.now() - 29 * 86_400_000).toISOString().slice(0, 10)}T00:00:00Z`;
      const { rows } = (await get(`/v1/usage?from=${from}&group_by=month`)) as {
        rows: { cost_micros: number }[];
      };
      const sum = formatMicros(BigInt(rows.reduce((total, row) => total + row.cost_micros, 0)));
      expect((await figure("Spent in 30 days").innerText()).replaceAll(",", "")).toBe(sum);
      expect(await figure("Balance").innerText()).toBe(((await get("/v1/me")) as { balance: string }).balance);
      await page.getByText("Show as table").click();
      const byDay = page.getByRole("table", { name: "Cost by day and model" });
      expect(await byDay.getByRole("row").count()).toBe(1 + 30);
      expect(await byDay.getByRole("row").first().innerText()).toContain("acme-large");

      await chart().hover({ position: { x: 400, y: 100 } });
      const tooltip = page.locator(".tooltip");
      await tooltip.waitFor();
      expect(await tooltip.innerText()).toMatch(/^\w{3} \d+, \d{4}\s+\$[\d.]+\s[\s\S]*acme-/);

      const lines = await downloaded(() => button("Download CSV").click());
      expect(lines[0]).toMatch(/^day,model,requests,/);
      expect(lines.length).toBeGreaterThan(100);
      expect(lines[1]).toMatch(/^\d{4}-\d\d-\d\d,acme-[\w-]+,\d+,\d+,\d+,\d+,\d+,\d+$/);

      for (const choice of ["7 days", "Tokens", "By key"]) await page.locator(".segmented label", { hasText: choice }).click();
      await page.getByRole("img", { name: "Tokens by day and key" }).waitFor();
      expect(new URL(page.url()).hash).toBe("#/overview?range=7&measure=tokens&split=key");
      // The name of a key that can be read, and the id of one that is not the account's.
      const byKey = page.getByRole("table", { name: "Usage by key" });
      expect(await byKey.innerText()).toMatch(/test[\s\S]*key_batch/);
      await page.goBack();
      await page.getByRole("img", { name: "Tokens by day and model" }).waitFor();
    });

    test("lists the credits that expire or are promotional, in the order of the charges", async () => {
      const operator = operatorOf(app);
      const { accountId, secret } = await createTestKey(operator);
      const credit = (idempotencyKey: string, amountMicros: bigint, days: number, promotional: boolean) =>
        operator.creditAccount({
          accountId,
          amountMicros,
          reason: "test",
          idempotencyKey,
          expiresAt: timestampFromDate(new Date(Date.now() + days * 86_400_000)),
          promotional,
        });
      await credit("later", 2_000_000n, 10, true);
      await credit("sooner", 5_000_000n, 5, false);
      await signIn(secret);
      const table = page.getByRole("table", { name: "Credits" });
      await table.waitFor();
      const [, sooner, later] = await table.getByRole("row").allInnerTexts();
      expect(sooner).toMatch(/\$5\.00[\s\S]*Paid/);
      expect(later).toMatch(/\$2\.00[\s\S]*Promotional/);
      expect(await violations(page)).toEqual([]);
      await signIn(account.secret);
      await chart().waitFor();
      expect(await table.count()).toBe(0);
    });

    test("counts a charge on the day of the viewer's time zone, which it names", async () => {
      const timezoneId = "America/New_York";
      const key = await createTestKey(operatorOf(app));
      // At 03:00 UTC, it is still the evening before in New York.
      const midnight = Date.parse(new Date().toISOString().slice(0, 10)) - 20 * 86_400_000;
      const charges = [
        { time: midnight + 3 * 3_600_000, micros: 77 },
        { time: midnight + 15 * 3_600_000, micros: 66 },
      ];
      for (const { time, micros } of charges) await insertCharge(app, key, time, micros);
      const session = await browser.newCDPSession(page);
      await session.send("Emulation.setTimezoneOverride", { timezoneId });
      await signIn(key.secret);
      await chart().waitFor();
      await page.getByText("Show as table").click();
      const table = page.getByRole("table", { name: "Cost by day and model" });
      for (const { time, micros } of charges) {
        const row = table.getByRole("row", { name: `$0.0000${micros}` });
        const day = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: timezoneId }).format(time);
        expect(await row.innerText()).toContain(day);
      }
      await see("Times are in your time zone, America/New_York.");
      await session.send("Emulation.setTimezoneOverride", { timezoneId: "" });
      await session.detach();
    });

    test("shows the new day after midnight", async () => {
      await signIn(account.secret);
      await chart().waitFor();
      await page.getByText("Show as table").click();
      const dayMs = 86_400_000;
      await page.evaluate(`Date = class extends Date {
        constructor(...values) {
          super(...(values.length > 0 ? values : [Date.now() + ${dayMs}]));
        }
      }`);
      const tomorrow = new Intl.DateTimeFormat("en", { dateStyle: "medium" }).format(Date.now() + dayMs);
      await button("Refresh").click();
      await page.getByRole("table", { name: "Cost by day" }).getByRole("row", { name: tomorrow }).waitFor();
    });

    test("of an account without usage says what to do", async () => {
      const { secret } = await createTestKey(operatorOf(app));
      await signIn(secret);
      await see("No usage in the last 30 days");
      expect(await figure("Balance").innerText()).toBe("$0.00");
      await select("Ledger");
      await see("No entries yet");
      expect(await violations(page)).toEqual([]);
    });
  });

  describe("the usage", () => {
    test("of up to three days is shown by hour in the viewer's time zone, down to one hour", async () => {
      const key = await createTestKey(operatorOf(app));
      // In New York, the first one is at 00:30, and the clock is set back before the second one at 01:15.
      await insertCharge(app, key, Date.parse("2025-11-01T04:30Z"), 77);
      await insertCharge(app, key, Date.parse("2025-11-02T06:15Z"), 66);
      const session = await browser.newCDPSession(page);
      await session.send("Emulation.setTimezoneOverride", { timezoneId: "America/New_York" });
      await signIn(key.secret, "#/usage?from=2025-11-01&to=2025-11-03");
      await page.getByText("Show as table").click();
      const rows = page.getByRole("table", { name: "Cost by hour and model" }).getByRole("row");
      const texts = await rows.allInnerTexts();
      expect(texts).toHaveLength(1 + 24 + 25 + 24);
      expect(texts[1]).toMatch(/Nov 1, 2025, 00:00\s+\$0\.000077/);
      expect(texts[1 + 24 + 1]).toMatch(/Nov 2, 2025, 01:00\s+\$0\.00$/);
      expect(texts[1 + 24 + 2]).toMatch(/Nov 2, 2025, 01:00\s+\$0\.000066/);
      await page.locator(".u-over").click({ position: { x: 2, y: 100 } });
      await see("Back to the day");
      await expect.poll(() => figure("Cost").innerText()).toBe("$0.000077");
      expect(await violations(page)).toEqual([]);
      expect(hash()).toBe("#/usage?from=2025-11-01T00%3A00&to=2025-11-01");
      await page.goBack();
      await expect.poll(() => figure("Cost").innerText()).toBe("$0.000143");
      await rows.nth(2).getByRole("button").press("Enter");
      await see("No usage in this range");
      await signIn(key.secret, hash());
      await see("No usage in this range");
      await button("Back to the day").press("Enter");
      await expect.poll(() => figure("Cost").innerText()).toBe("$0.000077");
      expect(hash()).toBe("#/usage?from=2025-11-01&to=2025-11-01");
      await page.getByText("Show as table").click();
      expect(await rows.count()).toBe(1 + 24);
      const lines = await downloaded(() => button("Download CSV").click());
      expect(lines.slice(0, 2)).toEqual([
        expect.stringMatching(/^hour,model,requests,/),
        expect.stringMatching(/^2025-11-01T00:00,acme-large,1,1,0,1,0,77$/),
      ]);
      await button("Back to 30 days").press("Enter");
      await see("No usage in this range");
      expect(hash()).toBe("#/usage");
      await session.send("Emulation.setTimezoneOverride", { timezoneId: "" });
      await session.detach();
    });

    test("that is too much to show, or cannot be loaded, has no figures", async () => {
      await page.route("**/*GetUsage", (route) => route.fulfill({ json: { nextPageToken: "more" } }));
      await signIn(account.secret, "#/usage");
      await see("Too much to show");
      expect(await page.locator(".stat").count()).toBe(0);
      await page.getByText("Keys: all").click();
      await see("Too many to show");
      await page.unroute("**/*GetUsage");
      await page.route("**/*GetUsage", (route) => route.abort());
      await button("Refresh").press("Enter");
      await button("Try again").waitFor();
      expect(await page.locator(".stat").count()).toBe(0);
      await page.unroute("**/*GetUsage");
      await button("Try again").press("Enter");
      await figure("Requests").waitFor();
    });

    test("by end user lists the highest ones and the sum of the others, filtered by the address", async () => {
      await signIn(account.secret, "#/usage");
      await page.getByText("By end user").click();
      const rows = page.getByRole("table", { name: "Usage by end user" }).getByRole("row");
      await rows.first().waitFor();
      const texts = await rows.allInnerTexts();
      expect(texts).toHaveLength(1 + 100 + 1);
      expect(texts[1]).toContain("No end user");
      expect(texts[2]).toContain(HOSTILE_NAME);
      // The 31 lowest ones cost 10 to 310 micros.
      expect(texts.at(-1)).toMatch(/31 others[\s\S]*\$0\.00496$/);
      await page.getByText("Keys: all").click();
      await page.getByRole("checkbox", { name: "key_batch" }).check();
      await expect.poll(() => rows.count()).toBe(1 + 1);
      expect(hash()).toBe("#/usage?split=user&keys=key_batch");
      const cost = await figure("Cost").innerText();
      await signIn(account.secret, hash());
      await expect.poll(() => figure("Cost").innerText()).toBe(cost);
      await page.getByText("Keys: 1").waitFor();
    });
  });

  describe("the ledger", () => {
    test("is read page by page, filtered by the address, and shows what no filter matches", async () => {
      await generate(app, account.secret, "[[tokens=5]]");
      await signIn(account.secret, "#/ledger");
      await see("invoice 28");
      expect(await button("Previous").isDisabled()).toBe(true);
      await button("Next").click();
      await see("invoice 1001");
      expect(await button("Next").isDisabled()).toBe(true);
      await button("Previous").click();
      await see("invoice 28");
      await page.getByLabel("Kind").selectOption("generation");
      await page.getByText("invoice 28").waitFor({ state: "hidden" });
      expect(await page.locator(".link-button").count()).toBe(1);
      await page.getByLabel("Model").selectOption("vx-sandbox-large");
      await see("No entries match the filters");
      expect(await page.getByLabel("Key").locator("option").allInnerTexts()).toContain(HOSTILE_NAME);
      expect(new URL(page.url()).hash).toBe("#/ledger?kind=generation&model=vx-sandbox-large");
      await page.getByRole("link", { name: "Show all entries" }).click();
      await see("invoice 28");
      await page.getByLabel("From").fill("2020-01-01");
      await page.getByLabel("Until").fill("2020-01-31");
      await see("No entries match the filters");
    });

    test("keeps its filters while the viewer looks at another page", async () => {
      await signIn(account.secret, "#/ledger");
      await page.getByLabel("Kind").selectOption("generation");
      const sections = page.getByRole("navigation", { name: "Sections" });
      await sections.getByRole("link", { name: "Failures" }).click();
      await page.getByLabel("Error", { exact: true }).selectOption("Model failed");
      await sections.getByRole("link", { name: "Ledger" }).click();
      await expect.poll(() => new URL(page.url()).hash).toBe("#/ledger?kind=generation");
      expect(await page.getByLabel("Kind").inputValue()).toBe("generation");
      await sections.getByRole("link", { name: "Failures" }).click();
      await expect.poll(() => new URL(page.url()).hash).toBe("#/failures?code=upstream_error");
      await sections.getByRole("link", { name: "Failures" }).click();
      await expect.poll(() => new URL(page.url()).hash).toBe("#/failures");
    });

    test("has a field that finds an entry by the id of its generation, and shows all of its fields", async () => {
      await generate(app, account.secret, "[[tokens=5]]");
      const { entries } = await operatorOf(app).listLedgerEntries({ accountId: account.accountId });
      const { generationId = "" } = entries[0] ?? {};
      await signIn(account.secret, "#/ledger");
      await see("invoice 28");
      const search = page.getByRole("searchbox", { name: "Find an entry by its id" });
      await search.fill("invoice 28");
      await see("No entry has this id");
      await search.fill(generationId);
      await page.locator(".link-button").first().click();
      const text = await dialog().innerText();
      expect(text).toContain(generationId);
      expect(text).toMatch(/Output tokens\s+5 at \$1.25 per million/);
      expect(text).toMatch(/Request id\s+req_\w+/);
      expect(await dialog().getByRole("button", { name: "Refund" }).count()).toBe(0);
    });
  });

  describe("the events", () => {
    test("are read page by page, newest first, filtered by the address, and show all of their data", async () => {
      await signIn(account.secret, "#/events");
      await see("Credit of $0.035787");
      await button("Next").click();
      await see(`The key “test” was created`);
      expect(await button("Next").isDisabled()).toBe(true);
      await button("Previous").click();
      await page.getByLabel("Type").selectOption("key.created");
      await see(`The key “${HOSTILE_NAME}” was created`);
      await page.getByText("Credit of").first().waitFor({ state: "hidden" });
      expect(new URL(page.url()).hash).toBe("#/events?type=key.created");
      await page.getByLabel("Type").selectOption("account.suspended");
      await see("No events of this type");

      await page.getByLabel("Type").selectOption("credit.posted");
      await button("Credit of $0.035787").click();
      const text = await dialog().innerText();
      expect(text).toMatch(/reason\s+<img/i);
      expect(text).toMatch(/amount\s+\$0\.035787\s/i);
      expect(text).toMatch(/Event id\s+evt_\w+/);
      await dialog().getByText("Show as JSON").click();
      const response = await fetch(`${app.url}/v1/events?order=desc&types=credit.posted&page_size=1`, {
        headers: { authorization: `Bearer ${account.secret}` },
      });
      const { events } = (await response.json()) as { events: unknown[] };
      expect(await dialog().locator("pre").innerText()).toBe(JSON.stringify(events[0], null, 2));
      await inDialog("Copy JSON").press("Enter");
      await see("The JSON is copied.");
    });

    test("are written for a low balance, which a key with the scope billing sets and removes", async () => {
      const operator = operatorOf(app);
      const { accountId, secret } = await createPaidKey(operator);
      const billing = await createTestKey(operator, { accountId, scopes: ["read", "billing"] });
      const lowBalance = async () => (await operator.getAccount({ accountId })).account?.lowBalanceMicros;
      await signIn(billing.secret, "#/events");
      await see("No event is written when the balance becomes low.");
      await button("Change").click();
      await dialog().getByLabel("Amount").fill("five");
      await inDialog("Save").click();
      await see("Enter an amount with at most 6 decimals, such as 5.00.");
      expect(await violations(page)).toEqual([]);
      await dialog().getByLabel("Amount").fill("$1,000.50");
      await inDialog("Save").click();
      await see(/^A charge that takes the balance below/);
      expect(await lowBalance()).toBe(1_000_500_000n);
      await generate(app, secret, "[[tokens=5]]");
      expect(await violations(page)).toEqual([]);
      await button("Change").click();
      await dialog().getByLabel("Amount").fill("");
      await inDialog("Save").click();
      await see("No event is written when the balance becomes low.");
      expect(await lowBalance()).toBe(undefined);
    });

    test("and the keys say which scope a key lacks to change the low balance and keys", async () => {
      await signIn(account.readOnly.secret, "#/events");
      await see("A key with the scope “billing” can change this.");
      expect(await button("Change").count()).toBe(0);
      await select("API keys");
      await see("This key cannot manage keys");
      expect(await button("Create key").count()).toBe(0);
      expect(await violations(page)).toEqual([]);
    });
  });

  describe("the keys", () => {
    test("the section shows how to set each client of Anthropic's API, with the address and a model", async () => {
      await signIn(account.secret, "#/keys");
      const section = page.getByRole("region", { name: "Clients of Anthropic's API" });
      for (const { id, code } of anthropicClients(app.url, "vx-sandbox-large", BUILT_IN_MODELS)) {
        await section.getByLabel("Client").selectOption(id);
        expect(await section.locator("code.shown-command").textContent()).toBe(code);
      }
    });

    test("are created, with the secret shown once, and revoked after a confirmation", async () => {
      await signIn(account.secret, "#/keys");
      await button("Create key").click();
      await inDialog("Create key").click();
      await see("Enter a name.");
      await dialog().getByLabel("Name").fill("deploy <b>");
      await dialog().getByLabel("Requests per minute").fill("7");
      await dialog()
        .getByLabel(/^generate/)
        .uncheck();
      await inDialog("Create key").click();
      await see("The key is shown only now.");
      const secret = await page.locator(".shown-secret").innerText();
      const command = await dialog().locator(".shown-command").innerText();
      const { stdout } = await run("sh", ["-c", command.replace("curl ", "curl --silent ")]);
      expect(JSON.parse(stdout)).toMatchObject({ key_name: "deploy <b>" });
      await button("Copy command").click();
      await see("The command is copied.");
      // Chromium lets pages prevent only the first of several.
      for (let i = 0; i < 3; i++) await page.keyboard.press("Escape");
      expect(await dialog().isVisible()).toBe(true);
      await button("Copy key").click();
      await see("Copied");
      await button("Done").click();
      await see("deploy <b>");
      expect(await page.content()).not.toContain(secret);
      const me = () => fetch(`${app.url}/v1/me`, { headers: { authorization: `Bearer ${secret}` } });
      expect(await (await me()).json()).toMatchObject({ key_name: "deploy <b>", rate_limit_rpm: 7 });

      await button("Revoke deploy <b>").click();
      await inDialog("Cancel").click();
      expect((await me()).status).toBe(200);
      await button("Revoke deploy <b>").click();
      await inDialog("Revoke key").click();
      await see("The key “deploy <b>” is revoked.");
      expect((await me()).status).toBe(401);
    });

    test("are edited and rotated, within what the key that is signed in may do", async () => {
      const { secret, accountId } = await createTestKey(operatorOf(app), { scopes: ["generate", "read", "keys", "webhooks"] });
      const me = async (key: string) => {
        const headers = { authorization: `Bearer ${key}` };
        return (await fetch(`${app.url}/v1/me`, { headers })).status;
      };
      await signIn(secret, "#/keys");
      await button("Create key").click();
      await dialog().getByLabel("Name").fill("child");
      await dialog()
        .getByLabel(/^webhooks/)
        .check();
      await dialog()
        .getByLabel(/^vx-sandbox-small/)
        .check();
      await inDialog("Create key").click();
      const child = await page.locator(".shown-secret").innerText();
      await button("Done").click();
      await see("generate, read, webhooks");

      await button("Edit child").click();
      expect(
        await dialog()
          .getByLabel(/^billing/)
          .count(),
      ).toBe(0);
      await dialog()
        .getByLabel(/^webhooks/)
        .uncheck();
      await dialog().getByLabel("Requests per minute").fill("12");
      await inDialog("Save").click();
      await see("The key “child” is changed.");
      await see("12/min");
      const { apiKeys } = await operatorOf(app).listKeys({ accountId });
      expect(apiKeys.find(({ name }) => name === "child")).toMatchObject({
        scopes: ["generate", "read"],
        rateLimitRpm: 12,
        models: ["vx-sandbox-small"],
      });

      await button("Rotate child").click();
      await dialog().getByLabel("The present secret works for").selectOption("3600");
      await inDialog("Rotate key").click();
      await see(/^The previous secret works until/);
      const rotated = await page.locator(".shown-secret").innerText();
      await button("Done").click();
      expect([await me(child), await me(rotated)]).toEqual([200, 200]);
      await button("Rotate child").click();
      await dialog().getByLabel("The present secret works for").selectOption("0");
      await inDialog("Rotate key").click();
      await button("Done").click();
      expect([await me(child), await me(rotated)]).toEqual([401, 401]);
    });

    test("get the limits and addresses of the form, and none once they are revoked", async () => {
      const { secret, accountId } = await createTestKey(operatorOf(app));
      const operator = operatorOf(app);
      const childOf = async () => (await operator.listKeys({ accountId })).apiKeys.find(({ name }) => name === "bounded");
      await signIn(secret, "#/keys");
      await button("Create key").click();
      await dialog().getByLabel("Name").fill("bounded");
      await dialog().getByLabel("Allowed addresses").fill("203.0.113.7");
      await inDialog("Add limit").click();
      await dialog().getByLabel("What is limited").selectOption("concurrent");
      await dialog().getByLabel("Amount").fill("3");
      expect(await violations(page)).toEqual([]);
      await inDialog("Create key").click();
      await button("Done").click();
      await see("From 203.0.113.7/32");
      expect(await childOf()).toMatchObject({ allowedCidrs: ["203.0.113.7/32"], limits: [{ metric: "concurrent", amount: 3n }] });

      await button("Edit bounded").click();
      await dialog().getByLabel("Allowed addresses").fill("203.0.113.300");
      await inDialog("Save").click();
      await dialog()
        .getByText(/allowed_cidrs/)
        .waitFor();
      await dialog().getByLabel("Allowed addresses").fill("203.0.113.0/24");
      await inDialog("Save").click();
      await see("From 203.0.113.0/24");
      expect((await childOf())?.limits).toHaveLength(1);

      await page.getByRole("link", { name: "bounded" }).click();
      await button("Set limit").waitFor();
      await operator.revokeKey({ keyId: (await childOf())?.id ?? "" });
      await page.goto(`${app.url}/account#/keys`);
      await page.getByRole("link", { name: "bounded" }).click();
      await see("Running generations");
      expect(await button("Set limit").count()).toBe(0);
      expect(await page.getByRole("button", { name: /^(Change|Remove) / }).count()).toBe(0);
    });

    test("have limits, which are set, changed and removed on the page of the key", async () => {
      const { secret, accountId } = await createTestKey(operatorOf(app));
      await signIn(secret, "#/keys");
      await button("Create key").click();
      await dialog().getByLabel("Name").fill("limited");
      await inDialog("Create key").click();
      await button("Done").click();
      await page.getByRole("link", { name: "limited" }).click();
      await see("No limits");
      const ownLimits = async () => {
        const { apiKeys } = await operatorOf(app).listKeys({ accountId });
        return apiKeys.find(({ name }) => name === "limited")?.limits ?? [];
      };
      for (const [metric, amount] of [
        ["cost", "25"],
        ["tokens", "1,000"],
      ] as const) {
        await button("Set limit").click();
        await dialog().getByLabel("What is limited").selectOption(metric);
        await dialog().getByLabel("Amount", { exact: true }).fill(amount);
        await inDialog("Set limit").click();
        await dialog().waitFor({ state: "detached" });
      }
      await see("$25.00 left");
      await button("Change Tokens per month").click();
      await dialog().getByLabel("Amount", { exact: true }).fill("2000");
      await inDialog("Set limit").click();
      await see("2,000 left");
      expect(await violations(page)).toEqual([]);
      expect((await ownLimits()).map(({ metric, amount }) => [metric, amount])).toEqual([
        ["cost", 25_000_000n],
        ["tokens", 2_000n],
      ]);
      await button("Set limit").click();
      await dialog().getByLabel("Window").selectOption("hour");
      await dialog().getByLabel("What is limited").selectOption("cost_alert");
      await dialog().getByText("Refuses no call").waitFor();
      expect(await dialog().getByLabel("Window").locator("option").allInnerTexts()).toEqual([
        "Each day",
        "Each week, from Monday",
        "Each month",
        "In total",
      ]);
      await dialog().getByLabel("Amount", { exact: true }).fill("40.50");
      expect(await violations(page)).toEqual([]);
      await inDialog("Set limit").click();
      await see("Alert on cost per month");
      await see("$40.50 left");
      expect(await ownLimits()).toContainEqual(
        expect.objectContaining({ metric: "cost_alert", window: "month", amount: 40_500_000n }),
      );
      await button("Remove Alert on cost per month").click();
      await inDialog("Remove limit").click();
      await page.getByText("$40.50 left").waitFor({ state: "detached" });
      await button("Remove Cost per month").click();
      await inDialog("Remove limit").click();
      await page.getByText("$25.00 left").waitFor({ state: "detached" });
      expect((await ownLimits()).map(({ metric }) => metric)).toEqual(["tokens"]);
      // One for each end user is another limit.
      await button("Set limit").click();
      await dialog().getByLabel("What is limited").selectOption("tokens");
      await dialog().getByLabel("Applies to").selectOption("user");
      await dialog().getByLabel("Amount", { exact: true }).fill("500");
      await inDialog("Set limit").click();
      await dialog().waitFor({ state: "detached" });
      const amounts = (await ownLimits()).map(({ metric, per, amount }) => [metric, per, amount]);
      expect(amounts).toEqual(
        expect.arrayContaining([
          ["tokens", "", 2_000n],
          ["tokens", "user", 500n],
        ]),
      );
    });

    test("have names that do not reverse other texts", async () => {
      const { accountId, secret } = await createTestKey(operatorOf(app));
      await operatorOf(app).createKey({ accountId, name: REVERSING_NAME, scopes: ["read"] });
      await signIn(secret, "#/keys");
      await see("gnp.exe");
      expect(await page.evaluate(REVERSED)).toEqual([]);
      await button(/^Revoke ci/).click();
      await dialog().waitFor();
      expect(await page.evaluate(REVERSED)).toEqual([]);
      await inDialog("Revoke key").click();
      await see(/^The key .* is revoked/);
      expect(await page.evaluate(REVERSED)).toEqual([]);
    });

    test("cannot exceed the key that creates them: the dialog says why", async () => {
      await signIn(account.secret, "#/keys");
      await button("Create key").click();
      await dialog().getByLabel("Name").fill("fast");
      await dialog().getByLabel("Requests per minute").fill("999999");
      await inDialog("Create key").click();
      await dialog().getByText("Not accepted").waitFor();
      expect(await dialog().innerText()).toMatch(/Request id: req_/);
      expect(await dialog().getByLabel("Name").inputValue()).toBe("fast");
    });
  });

  test("the limits show what is used, held and left, and refresh by themselves", async () => {
    const operator = operatorOf(app);
    const { secret, id, accountId } = await createPaidKey(operator);
    await operator.setLimit({
      owner: { case: "accountId", value: accountId },
      limit: { metric: "generations", window: "day", amount: 1_000n },
      reason: "test",
    });
    await operator.setLimit({ owner: { case: "keyId", value: id }, limit: { metric: "concurrent", amount: 4n }, reason: "test" });
    await signIn(secret, "#/limits");
    await see("0 used · 1,000 left");
    const row = page.getByRole("row", { name: "Generations per day" });
    expect(await row.innerText()).toContain("Account");
    expect(await row.innerText()).toContain("set by the operator");
    await page.getByRole("row", { name: "Running generations" }).getByText("0 running · 4 left").waitFor();
    const controller = new AbortController();
    const running = fetch(`${app.url}/v1/generate`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: "[[tokens=2000 delay_ms=20]]" }] }),
      signal: controller.signal,
    });
    await row.getByText("0 used · 1 held · 999 left").waitFor();
    await see("1 running · 3 left");
    controller.abort();
    await expect(running).rejects.toThrow("aborted");
    await see("0 running · 4 left");
  });

  describe("signing in", () => {
    test("without a valid key is refused without a call, and with an unknown one shows the error of the server", async () => {
      await open();
      for (const [secret, message] of [
        ["sk-other", "The API key begins with vx_live_."],
        ["", "Enter the API key."],
        ["vx_live_\u00e9", "The API key begins with vx_live_."],
        [`vx_live_${"a".repeat(32)}`, "Not signed in"],
      ] as const) {
        await page.getByLabel("API key").fill(secret);
        await page.keyboard.press("Enter");
        await see(message);
      }
      await see(/^Request id: req_/);
    });

    test("ends when the key is revoked", async () => {
      const { id, secret } = await createTestKey(operatorOf(app), { accountId: account.accountId });
      await signIn(secret, "#/ledger");
      await see("invoice 28");
      await operatorOf(app).revokeKey({ keyId: id });
      await button("Next").click();
      await see("The API key was revoked. Use another key.");
      expect(await page.getByLabel("API key").inputValue()).toBe("");
    });

    test("without the scope for the usage still shows the balance", async () => {
      const { secret } = await createTestKey(operatorOf(app), { scopes: ["generate"] });
      await signIn(secret);
      await see('The API key lacks the scope "read".');
      await see("$0.00");
    });

    test("to a suspended account shows that it is, its usage and its ledger", async () => {
      const { secret, accountId } = await createPaidKey(operatorOf(app));
      await generate(app, secret, "[[tokens=2000]]");
      await operatorOf(app).suspendAccount({ accountId, reason: "unpaid" });
      await signIn(secret);
      await see("The account is suspended");
      await chart().waitFor();
      await see(/^\$0\.002\d+$/);
      await page.goto(`${app.url}/account#/ledger`);
      await see("invoice 1001");
    });

    test("ends with a reload, and nothing is stored", async () => {
      await signIn(account.secret);
      await chart().waitFor();
      expect(await page.evaluate(STORED)).toEqual({ local: [], session: [], databases: [], caches: [] });
      expect(await browser.cookies()).toEqual([]);
      await page.reload();
      await page.getByLabel("API key").waitFor();
      expect(await page.getByLabel("API key").inputValue()).toBe("");
    });
  });

  test("an unreachable server is shown, and the call can be repeated", async () => {
    await signIn(account.secret, "#/ledger");
    await see("invoice 28");
    await browser.setOffline(true);
    await button("Next").click();
    await see("The server cannot be reached");
    await browser.setOffline(false);
    await button("Try again").click();
    await see("invoice 1001");
  });

  test("everything can be reached with the keyboard, and a dialog returns the focus", async () => {
    const focused = () =>
      page.evaluate<string>("(document.activeElement.textContent || document.activeElement.ariaLabel || '').trim()");
    const tabTo = async (name: string) => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press("Tab");
        if ((await focused()) === name) return;
      }
      throw new Error(`Tab does not reach ${name}`);
    };
    await open();
    await page.locator("input:focus").waitFor();
    await page.keyboard.type(account.secret);
    await page.keyboard.press("Enter");
    await chart().waitFor();
    await page.keyboard.press("Tab");
    await tabTo("API keys");
    await page.keyboard.press("Enter");
    await see(HOSTILE_NAME);
    await tabTo("Create key");
    await page.keyboard.press("Enter");
    await dialog().waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "hidden" });
    await vi.waitFor(async () => expect(await focused()).toBe("Create key"));
    await page.keyboard.press("Shift+Tab");
    await tabTo("Sign out");
    await page.keyboard.press("Enter");
    await page.getByLabel("API key").waitFor();
  });

  test("a dialog that the browser closes itself can be opened again", async () => {
    await signIn(account.secret, "#/keys");
    await button("Create key").click();
    await dialog().waitFor();
    await page.evaluate("document.querySelector('dialog').close()");
    await dialog().waitFor({ state: "detached" });
    await button("Create key").click();
    await dialog().waitFor();
  });

  test("there are no errors except those of refused calls, and no requests to other hosts", () => {
    expect(watched.complaints.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
    expect(watched.foreign).toEqual([]);
  });

  async function downloaded(start: () => Promise<void>): Promise<string[]> {
    const [download] = await Promise.all([page.waitForEvent("download") as Promise<Download>, start()]);
    return readFileSync(await download.path(), "utf8").split("\r\n");
  }
});
