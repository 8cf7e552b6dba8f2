import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath } from "../support/browser.ts";
import type { TestKey } from "../support/fixtures.ts";
import { words } from "../support/words.ts";
import { fillDatabase, MARKUP, OperatorConsole } from "./operator-console.ts";
import { BRIGHTNESS, outside, STORED, violations } from "./page-checks.ts";

const NAME = "Acme <b>AI</b>";
const SECTIONS = words("Overview Accounts Keys Usage Ledger Payments Models Plans Events Webhooks Operators Log Audit");
const TABS = words("Summary Usage Keys Limits Members Ledger Payments Failures Events Webhooks Activity");

const WIDE = { width: 1280, height: 900 } as const;
const NARROW = { width: 390, height: 844 } as const;

type Look = typeof WIDE | typeof NARROW;
type Scheme = "light" | "dark";

describe.skipIf(!chromiumPath)("the operator console", () => {
  let console: OperatorConsole;

  beforeAll(async () => {
    console = await OperatorConsole.start({ VX_PRODUCT_NAME: NAME });
  });
  afterAll(() => console?.stop());

  async function signInAs(size: Look, colorScheme: Scheme): Promise<void> {
    await console.page.setViewportSize(size);
    await console.page.emulateMedia({ colorScheme });
    await console.signIn();
  }

  /** The page fits the window, has the colors of the setting, and can be used by everyone. */
  async function expectLook({ width }: Look, colorScheme: Scheme): Promise<void> {
    const { page } = console;
    await console.loaded();
    expect(await page.evaluate<number>(BRIGHTNESS)).toSatisfy((value: number) =>
      colorScheme === "dark" ? value < 0.2 : value > 0.8,
    );
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    expect(await outside(page, "main :not(.tabs a), .tabs [aria-current]")).toEqual([]);
    expect(await violations(page)).toEqual([]);
  }

  test("of a new service shows every page", async () => {
    const [size, colorScheme] = [NARROW, "light"] as const;
    await signInAs(size, colorScheme);
    for (const section of SECTIONS) {
      await console.select(section);
      await expectLook(size, colorScheme);
    }
    await console.select("Accounts");
    await console.seen("No accounts yet");
    await console.select("Operators");
    await console.seen("No operators yet");
    expect(console.complaints).toEqual([]);
  });

  describe("with ten thousand accounts", () => {
    let key: TestKey;

    beforeAll(async () => {
      key = await fillDatabase(console);
    });

    const full: [Look, Scheme][] = [
      [WIDE, "light"],
      [NARROW, "dark"],
    ];

    test.each(full)("shows every page at %o, %s", async (size, colorScheme) => {
      const { page } = console;
      await signInAs(size, colorScheme);
      for (const section of SECTIONS) {
        await console.select(section);
        if (section === "Audit") {
          await page.getByRole("button", { name: "Run audit" }).click();
          // The usage was written without entries of the ledger.
          await console.seen(/^The audit found/);
        }
        await expectLook(size, colorScheme);
      }
      await console.select("Accounts");
      await page.getByRole("link", { name: MARKUP }).click();
      for (const tab of TABS) {
        const parts = page.getByRole("navigation", { name: "Parts of the account" });
        await parts.getByRole("link", { name: tab }).click();
        await parts.locator("[aria-current=page]").getByText(tab).waitFor();
        await expectLook(size, colorScheme);
        expect(await console.text()).toContain(MARKUP);
      }
      expect(console.complaints).toEqual([]);
    });

    test("lists the accounts page by page, and finds them by name and id", async () => {
      const { page } = console;
      await signInAs(WIDE, "light");
      await console.select("Accounts");
      const rows = page.getByRole("row");
      expect(await rows.count()).toBe(26);
      await page.getByRole("button", { name: "Next" }).click();
      await console.seen("account 9976");
      await console.seen("Page 2");
      await page.getByRole("button", { name: "Previous" }).click();
      await console.seen(MARKUP);
      const search = page.getByRole("searchbox", { name: "Search accounts" });
      for (const [text, name] of [
        ["ACCOUNT 9999", "account 9999"],
        [key.accountId, MARKUP],
      ] as const) {
        await search.fill(text);
        await expect.poll(() => rows.count()).toBe(2);
        await console.seen(name);
      }
      await search.fill("nothing like this");
      await console.seen("No account matches the search");
    });

    test("names the keys of all accounts in the usage, with a link to each", async () => {
      const { page } = console;
      await signInAs(WIDE, "light");
      await console.select("Usage");
      await page.getByText("By key").click();
      await page.getByRole("link", { name: `test · ${MARKUP}` }).click();
      await page.getByRole("link", { name: MARKUP, exact: true }).waitFor();
      await page.getByRole("heading", { name: "test" }).waitFor();
      expect(new URL(page.url()).hash).toBe(`#/keys?id=${key.id}`);
      await expectLook(WIDE, "light");
    });

    test("shows the usage of any days, of an account and of models, which the address keeps", async () => {
      const { page } = console;
      const day = new Date(Date.now() - 10 * 86_400_000).toISOString().slice(0, 10);
      const charges = page.locator(".stat", { hasText: "Charges" }).locator(".stat-value");
      await signInAs(NARROW, "dark");
      await console.select("Usage");
      for (const field of ["Until", "From"]) await page.getByLabel(field).fill(day);
      await page.getByRole("combobox", { name: "Account" }).fill(key.accountId);
      await page.keyboard.press("Enter");
      await page.getByText("By end user").waitFor();
      await page.getByText("Models: all").click();
      await page.getByRole("checkbox", { name: "acme-3" }).check();
      await expect.poll(() => charges.innerText()).toBe("$3.8103");
      const { hash } = new URL(page.url());
      expect(hash).toBe(`#/usage?to=${day}&from=${day}&account=${key.accountId}&models=acme-3`);
      await page.getByRole("table", { name: "Margin" }).getByText("acme-8").waitFor();
      await expectLook(NARROW, "dark");
      await page.getByRole("img", { name: "Cost by hour and model" }).waitFor();
      await page.goBack();
      await page.getByText("Models: all").waitFor();
      await expect.poll(() => charges.innerText()).toBe("$42.2064");
      expect(console.complaints).toEqual([]);
    });

    test("finds the ledger of an account by its external id, and filters it by the address", async () => {
      const { page } = console;
      await signInAs(NARROW, "light");
      await console.select("Ledger");
      await page.getByRole("combobox", { name: "Account" }).fill(`crm-${MARKUP}`.slice(0, 100));
      await page.keyboard.press("Enter");
      await page.getByText("Entries of").waitFor();
      await page.getByLabel("Kind").selectOption("generation");
      await console.seen("No entries match the filters");
      expect(page.url()).toMatch(/#\/ledger\?account=acct_[^&]+&kind=generation$/);
      await page.goBack();
      await console.seen("$25.00");
      // A browser without a window has no dialog to choose a file.
      await page.evaluate("delete globalThis.showSaveFilePicker");
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download CSV" }).click();
      await page.getByRole("button", { name: "Download", exact: true }).click();
      expect((await download).suggestedFilename()).toBe("ledger.csv");
    });

    test("lists the failed calls of an account with their upstreams, filtered by the address", async () => {
      const { page } = console;
      await page.setViewportSize(WIDE);
      await console.signIn(undefined, `/#/accounts?id=${key.accountId}&tab=failures`);
      await page.getByRole("row").nth(1).waitFor();
      await page.getByLabel("Error", { exact: true }).selectOption("Model failed");
      await page.getByRole("button", { name: "Model failed" }).last().click();
      await page.getByRole("dialog").getByText("openai 10.0.0.7/v1 acme").waitFor();
      expect(page.url()).toMatch(/tab=failures&code=upstream_error$/);
      await page.keyboard.press("Escape");
      const counts = page.getByRole("table", { name: "Failed calls by error" });
      await counts.getByRole("button", { name: "Balance too low" }).click();
      await expect.poll(() => page.url()).toMatch(/tab=failures&code=insufficient_balance$/);
      expect(await violations(page)).toEqual([]);
    });

    test("says that earlier entries of a ledger are archived", async () => {
      const { page } = console;
      const show = async () => {
        await signInAs(WIDE, "light");
        await console.select("Ledger");
        await page.getByRole("combobox", { name: "Account" }).fill(key.accountId);
        await page.keyboard.press("Enter");
        await page.getByText("Entries of").waitFor();
        await console.loaded();
        return await console.text();
      };
      expect(await show()).not.toContain("archived");
      await console.app.database.owner`DELETE FROM vx.ledger WHERE account_id = ${key.accountId} AND seq = 1`;
      expect(await show()).toContain("Earlier entries are archived.");
    });

    test("stores nothing in the browser, and a reload signs out", async () => {
      const { page } = console;
      await signInAs(WIDE, "light");
      await console.select("Accounts");
      expect(await page.evaluate(STORED)).toEqual({ local: [], session: [], databases: [], caches: [] });
      expect(await page.evaluate("document.cookie")).toBe("");
      await page.reload();
      await page.getByLabel("Operator token").waitFor();
    });
  });
});
