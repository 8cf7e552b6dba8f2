import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launchTestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { CUT_OFF, outside, violations, WITHOUT_VALUE } from "./page-checks.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

const SIMULATED = "Payments are simulated: no money moves.";
const WIDTHS = [1280, 390];

describe.skipIf(!chromiumPath)("the demo owner", () => {
  const profile = createTemporaryFolder("demo-browser");
  const data = createDataFolder("demo-data");
  const app = launchTestApp({ VX_DATA_DIR: data.path });
  let url: string;
  let browser: BrowserContext;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    ({ url } = await app.started);
    browser = await openBrowser(profile.path);
    watched = await openWatchedPage(browser, [url]);
    page = watched.page;
  });
  afterAll(async () => {
    await browser?.close();
    await app.end();
    for (const folder of [profile, data]) folder.remove();
  });

  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const see = (text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor();

  async function expectLooks(): Promise<void> {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 844 });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      expect(await outside(page, "body :not(.uplot *, .skip)")).toEqual([]);
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
      expect(await page.evaluate<string[]>(WITHOUT_VALUE)).toEqual([]);
      expect(await violations(page)).toEqual([]);
    }
    await page.setViewportSize({ width: 1280, height: 844 });
  }

  test("signs in with one click, and each section says that payments are simulated", async () => {
    await page.goto(`${url}/account`);
    await button("Sign in as the demo owner").waitFor();
    await expectLooks();
    await button("Sign in as the demo owner").click();
    await see("$10.00");
    const names = await page
      .getByRole("navigation", { name: "Sections" })
      .getByRole("link")
      .evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
    expect(names).toEqual(expect.arrayContaining(["#/payments", "#/members", "#/playground", "#/limits"]));
    for (const href of names) {
      await page.goto(`${url}/account${href}`);
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      await see(SIMULATED);
      await expectLooks();
    }
  });

  test("adds credit without money, and keeps the session over a reload", async () => {
    await page.goto(`${url}/account#/payments?add=credit`);
    await page.getByRole("dialog").getByLabel("Amount").fill("12.50");
    await see("The payment is simulated.");
    await button("Continue").click();
    await see("Simulated payment page");
    await expectLooks();
    await button("Pay without money").click();
    await page.getByRole("row", { name: /\$12\.50.*One-time payment.*Credited/ }).waitFor();
    await page.goto(`${url}/account#/overview`);
    await page.reload();
    await see("$22.50");
    await button("Sign out").click();
    await button("Sign in as the demo owner").waitFor();
    // Chromium reports the status 401 by which the page knows that nobody is signed in.
    expect(watched.complaints.filter((text) => !text.includes("status of 401"))).toEqual([]);
    expect(watched.foreign).toEqual([]);
  });
});
