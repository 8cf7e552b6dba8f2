import { readFileSync } from "node:fs";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { parseCsv } from "../support/csv.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { createFullAccount, type FullAccount, generate } from "./account-data.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

if (!chromiumPath) {
  console.error("SKIPPED: downloads were tested in no browser. Install chromium, or name one in CHROMIUM.");
}

/** A browser without a window has no dialog to choose a file: the page gets this file, and counts its writes. */
const CHOOSE_FILE = `globalThis.written = [];
globalThis.showSaveFilePicker = async ({ suggestedName }) => {
  const folder = await navigator.storage.getDirectory();
  const handle = await folder.getFileHandle(suggestedName, { create: true });
  const create = handle.createWritable.bind(handle);
  handle.createWritable = async () => {
    const stream = await create();
    const write = stream.write.bind(stream);
    stream.write = (text) => {
      written.push(text.length);
      return write(text);
    };
    return stream;
  };
  return handle;
};`;

/** The text of the chosen file, which is then removed; null if there is none. */
const READ_FILE = `(async () => {
  const folder = await navigator.storage.getDirectory();
  const handle = await folder.getFileHandle("ledger.csv").catch(() => null);
  if (handle === null) return null;
  const text = await (await handle.getFile()).text();
  await folder.removeEntry("ledger.csv");
  return text;
})()`;

describe.skipIf(!chromiumPath)("the ledger as CSV", () => {
  const profile = createTemporaryFolder("download-browser");
  let app: TestApp;
  let account: FullAccount;
  let browser: BrowserContext;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    app = await startTestApp();
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
  beforeEach(() => openLedger(account.secret));

  const dialog = () => page.getByRole("dialog");
  const inDialog = (name: string) => dialog().getByRole("button", { name, exact: true });

  async function openLedger(secret: string): Promise<void> {
    await page.goto("about:blank");
    await page.goto(`${app.url}/account#/ledger?kind=credit`);
    await page.getByLabel("API key").fill(secret);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Download CSV" }).click();
  }

  /** Saves a file that the page keeps in memory. */
  async function saved(name: string): Promise<{ readonly name: string; readonly lines: string[] }> {
    const [download] = await Promise.all([page.waitForEvent("download"), inDialog(name).click()]);
    const lines = readFileSync(await download.path(), "utf8").split("\r\n");
    expect(lines.pop()).toBe("");
    return { name: download.suggestedFilename(), lines };
  }

  test("is complete and contains no formulas", async () => {
    await page.evaluate("delete globalThis.showSaveFilePicker");
    const { name, lines } = await saved("Download");
    expect(name).toBe("ledger.csv");
    expect(lines.length).toBe(1 + 31);
    expect(lines[0]).toMatch(/^seq,created_at,kind,amount_micros,/);
    expect(lines[1]).toContain(",credit,35787,");
    expect(lines[1]).toContain('"<img src=x onerror=""alert(1)"">');
    expect(lines[3]).toContain(",'=1+1,");
    await dialog().waitFor({ state: "hidden" });
  });

  test("has each count of tokens in its column", async () => {
    const { secret } = await createPaidKey(operatorOf(app));
    await generate(app, secret, "[[cached=1 cache_write=5 cache_write_1h=2 reasoning=3 tokens=4]] some words of a prompt");
    await openLedger(secret);
    await dialog().getByRole("button", { name: "Cancel" }).click();
    await page.goto(`${app.url}/account#/ledger`);
    await page.getByRole("button", { name: "Download CSV" }).click();
    await page.evaluate("delete globalThis.showSaveFilePicker");
    const { rows } = parseCsv((await saved("Download")).lines.join("\r\n"));
    expect(rows[0]).toMatchObject({
      cached_input_tokens: "1",
      cache_write_tokens: "5",
      cache_write_1h_tokens: "2",
      output_tokens: "7",
      reasoning_tokens: "3",
    });
  });

  test("is written page by page to the file that the viewer chooses", async () => {
    const { secret } = await createLargeLedger(2_500);
    await openLedger(secret);
    await page.evaluate(CHOOSE_FILE);
    await inDialog("Download").click();
    await dialog().waitFor({ state: "hidden" });
    const lines = (await page.evaluate<string>(READ_FILE)).split("\r\n");
    expect(lines.length).toBe(1 + 2_500 + 1);
    expect(lines[1]).toMatch(/^2500,/);
    expect(lines.at(-2)).toMatch(/^1,/);
    const written = await page.evaluate<number[]>("written");
    expect(written.length).toBe(1 + 3);
  });

  test("is not saved when the viewer chooses no file, and the dialog stays", async () => {
    await page.evaluate(`showSaveFilePicker = async () => {
      throw new DOMException("The user aborted a request.", "AbortError");
    }`);
    await inDialog("Download").click();
    await page.evaluate(CHOOSE_FILE);
    await inDialog("Download").click();
    await dialog().waitFor({ state: "hidden" });
    expect((await page.evaluate<string>(READ_FILE)).split("\r\n").length).toBe(1 + 31 + 1);
  });

  test("leaves no partial file when the server stops, and can be repeated", async () => {
    await page.evaluate(CHOOSE_FILE);
    await browser.setOffline(true);
    await inDialog("Download").click();
    await dialog().getByText("The server cannot be reached").waitFor();
    // Chromium creates the file when it is chosen.
    expect(await page.evaluate(READ_FILE)).toBe("");
    await browser.setOffline(false);
    await inDialog("Download").click();
    await dialog().waitFor({ state: "hidden" });
    expect((await page.evaluate<string>(READ_FILE)).split("\r\n").length).toBe(1 + 31 + 1);
  });

  test("says why a file cannot be written", async () => {
    await page.evaluate(`showSaveFilePicker = async () => {
      throw new DOMException("The disk is full.", "QuotaExceededError");
    }`);
    await inDialog("Download").click();
    await dialog().getByText("The file cannot be saved").waitFor();
    expect(await dialog().innerText()).toContain("The disk is full.");
  });

  test("is split into files of limited size in browsers that keep files in memory", async () => {
    const { secret } = await createLargeLedger(2_001);
    await limitFiles(2_000);
    await openLedger(secret);
    await page.evaluate("delete globalThis.showSaveFilePicker");
    const first = await saved("Download");
    expect(first.name).toBe("ledger.csv");
    expect(first.lines.length).toBe(1 + 2_000);
    await dialog().getByText("Part 1 is saved. There are more entries").waitFor();
    const second = await saved("Download part 2");
    expect(second.name).toBe("ledger-2.csv");
    expect(second.lines[0]).toBe(first.lines[0]);
    expect(second.lines[1]).toMatch(/^1,/);
    expect(second.lines.length).toBe(1 + 1);
    await dialog().waitFor({ state: "hidden" });
  });

  test("causes no errors except those of the stopped server", () => {
    expect(watched.complaints.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
    expect(watched.foreign).toEqual([]);
  });

  /** Lowers the limit of 50,000 entries in the script of the page. */
  async function limitFiles(entries: number): Promise<void> {
    const served = await page.goto(`${app.url}/account`);
    const script = /src="([^"]+\.js)"/.exec((await served?.text()) ?? "")?.[1] ?? "";
    await page.route(new URL(script, app.url).href, async (route) => {
      const answer = await route.fetch();
      const parts = (await answer.text()).split(/\b5e4\b/);
      expect(parts.length).toBe(2);
      await route.fulfill({ response: answer, body: parts.join(String(entries)) });
    });
  }

  /** An account with copies of its first credit; they need no correct hashes. */
  async function createLargeLedger(entries: number): Promise<{ readonly secret: string }> {
    const key = await createPaidKey(operatorOf(app));
    const { owner } = app.database;
    await owner`
      INSERT INTO vx.ledger
      SELECT (jsonb_populate_record(l, jsonb_build_object('seq', n, 'id', 'led_copy' || n || l.account_id))).*
      FROM vx.ledger l, generate_series(2, ${entries}) n WHERE l.account_id = ${key.accountId}`;
    await owner`UPDATE vx.accounts SET last_seq = ${entries} WHERE id = ${key.accountId}`;
    return key;
  }
});
