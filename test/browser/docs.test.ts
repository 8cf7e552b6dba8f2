import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

if (!chromiumPath) {
  console.error("SKIPPED: the pages were tested in no browser. Install chromium, or name one in CHROMIUM.");
}

/** The luminance of the background, from 0 for black to 1 for white. */
const BRIGHTNESS = `
  const colors = [document.body, document.documentElement].map((one) => getComputedStyle(one).backgroundColor);
  const shown = colors.find((color) => color !== "rgba(0, 0, 0, 0)") ?? "rgb(255, 255, 255)";
  const [red, green, blue] = shown.match(/[\\d.]+/g).map(Number);
  (red + green + blue) / 3 / 255;
`;

/** Texts that overflow their box. */
const CUT_OFF = `[...document.querySelectorAll("pre")]
  .filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => one.textContent)`;

/** Focus outlines around elements that are not interactive. */
const OUTLINED = `[...document.querySelectorAll("section")]
  .filter((one) => getComputedStyle(one).outlineStyle !== "none")
  .map((one) => one.id)`;

const STORED = `(async () => ({
  local: Object.entries(localStorage),
  session: Object.entries(sessionStorage),
  databases: await indexedDB.databases(),
  caches: await caches.keys(),
}))()`;

const SIZES = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
] as const;
const LOOKS = SIZES.flatMap((size) =>
  (["light", "dark"] as const).map((colorScheme) => ({ ...size, colorScheme })),
);

describe.skipIf(!chromiumPath)("in a browser", () => {
  const profile = createTemporaryFolder("browser");
  let app: TestApp;
  let key: TestKey;
  let browser: BrowserContext;
  let page: Page;
  let complaints: string[];
  let foreign: string[];

  beforeAll(async () => {
    app = await startTestApp();
    key = await createTestKey(operatorOf(app));
    browser = await openBrowser(profile.path);
    // Requests to other hosts are recorded and aborted.
    await browser.route("**", async (route) => {
      const { host, protocol } = new URL(route.request().url());
      if (host === new URL(app.url).host || protocol === "data:") return await route.continue();
      foreign.push(route.request().url());
      await route.abort();
    });
    complaints = [];
    foreign = [];
    page = await browser.newPage();
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
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

  describe.each(LOOKS)("$width px, $colorScheme", ({ width, height, colorScheme }) => {
    beforeAll(async () => {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
    });

    test.each([
      ["/", "First call"],
      ["/docs", "A paid, metered generation API"],
    ])("%s fits the window and has the right colors", async (path, text) => {
      await open(path, text);
      await expect
        .poll(() => page.evaluate<number>(BRIGHTNESS))
        .toSatisfy((value: number) => (colorScheme === "dark" ? value < 0.2 : value > 0.8));
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    });

    test("the first example calls on / are visible without scrolling", async () => {
      await open("/", "First call");
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
    });

    test("/docs shows the methods with their requests and responses", async () => {
      await open("/docs#tag/generateservice/POST/v1/generate", "Generates one reply");
      await seen("max_tokens");
      await seen("What is a ledger?");
      expect(await page.evaluate<string[]>(OUTLINED)).toEqual([]);
    });
  });

  test("a key that is entered is used for calls, and is not stored across a reload", async () => {
    await page.setViewportSize({ width: 1280, height: 900 });
    await open("/docs#tag/meservice/GET/v1/me", "Returns the plan and limit of the calling key");
    const field = page.getByPlaceholder("Token").first();
    await field.fill(key.secret);
    const answered = page.waitForResponse((response) => response.url() === `${app.url}/v1/me`);
    await page
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
    expect(complaints).toEqual([]);
    expect(foreign).toEqual([]);
  });

  test("no file of the browser's profile contains the key", async () => {
    await browser.close();
    const files = readdirSync(profile.path, { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    );
    expect(files.length).toBeGreaterThan(10);
    const holding = files
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((file) => readFileSync(file).includes(key.secret));
    expect(holding).toEqual([]);
  });
});
