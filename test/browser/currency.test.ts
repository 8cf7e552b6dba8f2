import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launchTestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** Forms fill in amounts with the sign of the currency, and must accept what they fill in. */
describe.skipIf(!chromiumPath)("the pages of a server that counts in euros", () => {
  const profile = createTemporaryFolder("currency-browser");
  const data = createDataFolder("currency-data");
  const app = launchTestApp({ VX_DATA_DIR: data.path, VX_CURRENCY: "EUR" });
  let url: string;
  let browser: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    ({ url } = await app.started);
    browser = await openBrowser(profile.path);
    page = await browser.newPage();
    await page.goto(`${url}/account`);
    await button("Sign in as the demo owner").click();
    await see("€10.00");
  });
  afterAll(async () => {
    await browser?.close();
    await app.end();
    for (const folder of [profile, data]) folder.remove();
  });

  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const see = (text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor();
  const dialog = () => page.getByRole("dialog");
  const inDialog = (name: string) => dialog().getByRole("button", { name, exact: true });

  test("keep a limit of cost that is saved unchanged", async () => {
    await page.goto(`${url}/account#/limits`);
    await button("Set limit").click();
    await dialog().getByLabel("Amount", { exact: true }).fill("€1,025.00");
    await inDialog("Set limit").click();
    await button("Change Cost per month").click();
    expect(await dialog().getByLabel("Amount", { exact: true }).inputValue()).toContain("€");
    await inDialog("Set limit").click();
    await dialog().waitFor({ state: "detached" });
    await see("€1,025.00");
  });

  test("keep a low balance that is saved unchanged", async () => {
    await page.goto(`${url}/account#/events`);
    await button("Change").click();
    await dialog().getByLabel("Amount").fill("5.00");
    await inDialog("Save").click();
    await see(/^A charge that takes the balance below €5.00/);
    await button("Change").click();
    expect(await dialog().getByLabel("Amount").inputValue()).toBe("€5.00");
    await inDialog("Save").click();
    await dialog().waitFor({ state: "detached" });
    await see(/^A charge that takes the balance below €5.00/);
  });
});
