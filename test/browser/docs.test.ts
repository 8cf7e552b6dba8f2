import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext, Locator, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { BRIGHTNESS, CUT_OFF, OUTLINED, outside, overlapping, STORED, violations } from "./page-checks.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

if (!chromiumPath) {
  console.error("SKIPPED: the pages were tested in no browser. Install chromium, or name one in CHROMIUM.");
}

/** Markup in the name is shown as text. */
const NAME = "Acme <b>AI</b>";
const GENERATE = "/docs#tag/generateservice/POST/v1/generate";

/** Colors do not depend on the width. */
const LOOKS = [
  { width: 1280, height: 900, colorScheme: "light" },
  { width: 390, height: 844, colorScheme: "dark" },
] as const;

describe.skipIf(!chromiumPath)("in a browser", () => {
  const profile = createTemporaryFolder("browser");
  let app: TestApp;
  let key: TestKey;
  let browser: BrowserContext;
  let page: Page;
  let watched: WatchedPage;

  beforeAll(async () => {
    app = await startTestApp({ env: { VX_PRODUCT_NAME: NAME, VX_SUPPORT_URL: "https://help.example.com" } });
    key = await createTestKey(operatorOf(app));
    browser = await openBrowser(profile.path);
    watched = await openWatchedPage(browser, [app.url]);
    page = watched.page;
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    profile.remove();
  });

  async function open(path: string, text: string): Promise<void> {
    await page.goto("about:blank");
    await page.goto(`${app.url}${path}`);
    await seen(text);
  }

  async function seen(text: string): Promise<void> {
    await page.getByText(text).filter({ visible: true }).first().waitFor();
  }

  /** The vertical position of the one visible element. */
  async function middleOf(found: Locator): Promise<number> {
    const visible = found.filter({ visible: true });
    await visible.waitFor();
    const { y, height } = (await visible.boundingBox()) ?? { y: Number.NaN, height: Number.NaN };
    return y + height / 2;
  }

  describe.each(LOOKS)("$width px, $colorScheme", ({ width, height, colorScheme }) => {
    beforeAll(async () => {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
    });

    /** The page fits the window and has the colors of the setting. */
    async function expectLook(): Promise<void> {
      await expect
        .poll(() => page.evaluate<number>(BRIGHTNESS))
        .toSatisfy((value: number) => (colorScheme === "dark" ? value < 0.2 : value > 0.8));
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
    }

    test("/ shows the name, the models and all of the example calls", async () => {
      await open("/", "First calls");
      await expectLook();
      expect(await page.title()).toBe(NAME);
      expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe(NAME);
      const row = page.getByRole("row").filter({ hasText: "vx-sandbox-small" });
      expect(await row.innerText()).toContain("$1.25");
      expect(await outside(page, "main *, nav *")).toEqual([]);
      expect(await overlapping(page, "nav", "a")).toEqual([]);
      expect(await violations(page)).toEqual([]);
    });

    test("/docs shows a quick start, the errors and a list of the methods in less than 300 KB", async () => {
      let bytes = 0;
      const count = async (request: Request) => {
        const { responseBodySize, responseHeadersSize } = await request.sizes();
        bytes += responseBodySize + responseHeadersSize;
      };
      page.on("requestfinished", count);
      await open("/docs", "Quick start");
      await page.waitForLoadState("networkidle");
      page.off("requestfinished", count);
      expect(bytes).toBeGreaterThan(1_000);
      expect(bytes).toBeLessThan(300_000);
      await expectLook();
      expect(await page.title()).toBe(`${NAME} API reference`);
      expect(await outside(page, "main *, nav *")).toEqual([]);
      expect(await overlapping(page, "main", "h2, h3, td, th, pre, .contents a")).toEqual([]);
      expect(await violations(page)).toEqual([]);
    });

    test("/docs shows a method and the dialog of a request, under the name of the product", async () => {
      await open(GENERATE, "Generates one reply");
      await seen("max_tokens");
      await seen("What is a ledger?");
      await seen("Show Schema");
      await expectLook();
      expect(await page.title()).toBe(`${NAME} API reference`);
      expect(await page.locator("body").innerText()).not.toMatch(/scalar/i);
      expect(await page.evaluate<string[]>(OUTLINED)).toEqual([]);
      expect(await overlapping(page, ".scalar-card-header-tabs", "[role=tab], button, label")).toEqual([]);
      expect(await violations(page)).toEqual([]);

      await page
        .getByRole("button", { name: /Test Request/ })
        .first()
        .click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: /^Send/ }).filter({ visible: true }).first().waitFor();
      await dialog.getByText("text/event-stream").first().waitFor();
      expect(await outside(page, "[role=dialog] button, [role=dialog] input, [role=dialog] td")).toEqual([]);
      expect(await overlapping(page, "[role=dialog] td", "[data-testid], button")).toEqual([]);
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
      const bar = dialog.locator(":has(> .address-bar-bg-states)");
      const parts = ["POST", "/v1/generate", "Copy URL", "Send"];
      const middles = parts.map((part) => middleOf(bar.getByText(part, { exact: true })));
      const [first, ...others] = await Promise.all(middles);
      for (const other of others) expect(Math.abs(other - (first ?? 0))).toBeLessThan(8);
    });
  });

  describe("with the keyboard alone", () => {
    /** The names of the elements that Tab reaches, until one matches. */
    async function tabTo(name: RegExp): Promise<string[]> {
      const names: string[] = [];
      for (let i = 0; i < 150; i++) {
        await page.keyboard.press("Tab");
        const focused = await page.evaluate<string>(
          "(document.activeElement.textContent || document.activeElement.ariaLabel || '').trim()",
        );
        names.push(focused);
        if (name.test(focused)) return names;
      }
      throw new Error(`Tab does not reach ${name}: ${names.join(", ")}`);
    }

    test("all links of / are reached in order", async () => {
      await open("/", "First calls");
      expect(await tabTo(/^All methods/)).toEqual([
        NAME,
        "API reference",
        "OpenAPI",
        "Account",
        "Support",
        "All methods, fields and errors are in the API reference.",
      ]);
    });

    test("a request is opened, and closed again", async () => {
      await page.setViewportSize({ width: 1280, height: 900 });
      await open(GENERATE, "Generates one reply");
      await seen("Show Schema");
      await tabTo(/^Test Request/);
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "hidden" });
    });
  });

  test("a link of the guide opens the method, and the way back shows the guide", async () => {
    await page.setViewportSize({ width: 1280, height: 900 });
    await open("/docs", "Quick start");
    await page.getByRole("link", { name: "Errors", exact: true }).click();
    await seen("insufficient_balance");
    await page.getByRole("link", { name: "Rotate key" }).click();
    await seen("Gives the calling key, or a key that it created");
    expect(await page.getByRole("heading", { name: "Quick start" }).isVisible()).toBe(false);
    await page.goBack();
    await seen("Quick start");
    expect(await violations(page)).toEqual([]);
  });

  test("a key that is entered is used for calls, and is not stored across a reload", async () => {
    await page.setViewportSize({ width: 1280, height: 900 });
    await open("/docs#tag/meservice/GET/v1/me", "Returns the plan and limit of the calling key");
    const field = page.getByPlaceholder("Token").first();
    await field.fill(key.secret);
    const answered = page.waitForResponse((response) => response.url() === `${app.url}/v1/me`);
    const method = page.locator('[id$="tag/meservice/GET/v1/me"]');
    await method
      .getByRole("button", { name: /Test Request/ })
      .first()
      .click();
    await page.getByRole("button", { name: /^Send/ }).first().click();
    expect((await answered).status()).toBe(200);

    await page.reload();
    await page.getByPlaceholder("Token").first().waitFor();
    expect(await page.getByPlaceholder("Token").first().inputValue()).toBe("");
    // The start page has the same origin, and no script that could change its storage.
    await open("/", "First call");
    expect(await page.evaluate(STORED)).toEqual({ local: [], session: [], databases: [], caches: [] });
    expect(await browser.cookies()).toEqual([]);
  });

  test("the pages cause no console errors and no requests to other hosts", () => {
    expect(watched.complaints).toEqual([]);
    expect(watched.foreign).toEqual([]);
  });

  test("no file of the browser's profile contains the key", async () => {
    await browser.close();
    const files = readdirSync(profile.path, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    expect(files.length).toBeGreaterThan(10);
    const holding = files
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((file) => readFileSync(file).includes(key.secret));
    expect(holding).toEqual([]);
  });
});
