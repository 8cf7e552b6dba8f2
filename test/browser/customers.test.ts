import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { type CustomerApp, startCustomerApp } from "../support/customer.ts";
import { operatorOf } from "../support/fixtures.ts";
import { imageOfSize, PNG } from "../support/images.ts";
import { createModelsFile } from "../support/models.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { BRIGHTNESS, CUT_OFF, outside, STORED, violations, WITHOUT_VALUE } from "./page-checks.ts";
import { personPage } from "./person-page.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

const run = promisify(execFile);
const MARKUP = `<img src=x onerror="alert(1)"> & ${"long-name-".repeat(6)}`;
/** Colors do not depend on the width. */
const LOOKS = [
  { width: 1280, height: 900, colorScheme: "light" },
  { width: 390, height: 844, colorScheme: "dark" },
] as const;

/** A model with all capabilities, and one without. */
const MODELS = [
  { id: "vx-sandbox-small", capabilities: ["tools", "images", "json_schema", "reasoning"] },
  { id: "plain", capabilities: [] },
].map((model) => ({
  ...model,
  context_window: 8_192,
  max_output_tokens: 4_096,
  input_micros_per_million_tokens: 250_000,
  output_micros_per_million_tokens: 1_250_000,
  upstream: { kind: "sandbox" },
}));

describe.skipIf(!chromiumPath)("the customer page of a person", () => {
  const models = createModelsFile(JSON.stringify({ models: MODELS }));
  const profile = createTemporaryFolder("customers-browser");
  let app: CustomerApp;
  let browser: BrowserContext;
  let watched: WatchedPage;
  let page: Page;

  beforeAll(async () => {
    app = await startCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_CREDIT: "5", VX_MODELS: models.path });
    browser = await openBrowser(profile.path);
    watched = await openWatchedPage(browser, [app.url, app.adminUrl, app.provider.issuer]);
    page = watched.page;
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    models.remove();
    profile.remove();
  });
  // Chromium reports the status 401 by which the page knows that nobody is signed in, refusals, and what is gone.
  afterEach(() => expect(watched.complaints.filter((text) => !/status of 40[134]/.test(text))).toEqual([]));

  const { button, dialog, inDialog, heading, see, open, signIn, signUp, shownLink, invite } = personPage(() => ({
    app,
    browser,
    page,
  }));

  /** The view fits the window, has the colors of the setting and violates no rule of accessibility. */
  async function expectLooks(): Promise<void> {
    for (const { width, height, colorScheme } of LOOKS) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      const brightness = await page.evaluate<number>(BRIGHTNESS);
      expect(brightness).toSatisfy((value: number) => (colorScheme === "dark" ? value < 0.2 : value > 0.8));
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      expect(await outside(page, "body :not(.uplot *, .skip)")).toEqual([]);
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
      expect(await page.evaluate<string[]>(WITHOUT_VALUE)).toEqual([]);
      expect(await violations(page)).toEqual([]);
    }
    await page.setViewportSize(LOOKS[0]);
    await page.emulateMedia({ colorScheme: "light" });
  }

  test("signs up with the keyboard alone, and makes the first call with the command that is shown", async () => {
    Object.assign(app.provider.behaviour, { subject: "ada", email: "ada@example.com", emailVerified: true });
    await open();
    await page.getByLabel("API key").waitFor();
    await expectLooks();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await heading("Create your account");
    await expectLooks();
    await button("Create account").press("Enter");
    await see("Enter a name.");
    await page.getByLabel("Name of the account").focus();
    await page.keyboard.type(MARKUP.slice(0, 90));
    await page.keyboard.press("Enter");
    await heading("Overview");
    await see("Make your first call");
    await expectLooks();
    await button("Create key").press("Enter");
    await see("The key is shown only now.");
    await expectLooks();
    const command = await page.locator(".shown-command").innerText();
    const { stdout } = await run("sh", ["-c", command.replace("curl ", "curl --silent ")]);
    expect(JSON.parse(stdout)).toMatchObject({ message: { role: "assistant" } });
    await inDialog("Done").press("Enter");
    await button("Refresh").waitFor();
    expect(await page.getByText("Make your first call").count()).toBe(0);
    // Nothing of the session is readable by a script.
    expect(await page.evaluate("document.cookie")).toBe("");
    expect(JSON.stringify(await page.evaluate(STORED))).not.toMatch(/vx_live|token/);
  });

  test("every section fits, is accessible and shows markup in names as text", async () => {
    await signUp('"<img/src=x>"@example.com', MARKUP.slice(0, 90));
    await invite("billing", "bob@example.com");
    const sections = await page.getByRole("navigation", { name: "Sections" }).getByRole("link").allInnerTexts();
    expect(sections).toEqual([
      "Overview",
      "Usage",
      "Playground",
      "API keys",
      "Limits",
      "Prices",
      "Ledger",
      "Statements",
      "Failures",
      "Events",
      "Webhooks",
      "Members",
      "Activity",
      "Your sessions",
    ]);
    for (const section of sections) {
      await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: section, exact: true }).click();
      await heading(section === "Statements" ? /^Statement/ : section);
      await page.locator(".skeleton, [aria-busy=true]").first().waitFor({ state: "detached" });
      await expectLooks();
    }
    await page.setViewportSize(LOOKS[1]);
    await button("Menu").press("Enter");
    await expectLooks();
  });

  test("the playground sends and prints images and the parameters that the model supports", async () => {
    await signUp("see@example.com", "See");
    await open("#/playground");
    const code = () => page.locator(".shown-command").innerText();
    const status = page.locator("[role=status]");
    await page.getByLabel("Model", { exact: true }).selectOption("vx-sandbox-small");
    await page.getByLabel("Message").fill("[[tokens=9]] What is this?");
    await page.getByLabel("Temperature").fill("2.1");
    await see("From 0 to 2, such as 0.7.");
    expect(await button("Send").isDisabled()).toBe(true);
    await page.getByLabel("Temperature").fill("0.5");
    await page.getByLabel("Reasoning effort").selectOption("low");
    const file = (name: string, mimeType: string, buffer: Buffer) => ({ name, mimeType, buffer });
    const choose = page.getByLabel("Images", { exact: true }).and(page.locator("input"));
    await choose.setInputFiles(file("notes.txt", "text/plain", Buffer.from("one")));
    await see("notes.txt is not a PNG, JPEG, GIF or WebP image.");
    await choose.setInputFiles(file("big.png", "image/png", imageOfSize(16 * 1_048_576 + 1)));
    await see("The images of a conversation can have 16 MiB together.");
    await choose.setInputFiles([file("it's.png", "image/png", PNG), file("two.png", "image/png", PNG)]);
    await button("Remove two.png").press("Enter");
    expect(await page.locator(".thumbnails img").evaluate((image) => image.naturalWidth)).toBe(1);
    expect(await code()).toMatch(/^\{ printf .* base64 < 'it'\\''s\.png' \|/);
    expect(await code()).toContain('"temperature":0.5,"reasoning_effort":"low","stream":true');
    await expectLooks();

    await button("Send").press("Enter");
    await see(/^Cost: .* and 25 output tokens\.$/);
    await page.getByText("Reasoning", { exact: true }).click();
    expect(await page.locator(".message details > div").innerText()).not.toBe("");
    expect(await page.locator(".message-user .thumbnails img").count()).toBe(1);
    await expectLooks();
    const { accounts } = await operatorOf(app).listAccounts({ search: "See" });
    const generationsOf = async () =>
      (await operatorOf(app).listLedgerEntries({ accountId: accounts[0]?.id ?? "", kind: "generation" })).entries;
    expect(await generationsOf()).toMatchObject([{ images: 1n, reasoningTokens: 16n, outputTokens: 25n }]);

    // The images of the conversation and the effort are not sent to a model that has neither.
    await page.getByLabel("Model", { exact: true }).selectOption("plain");
    expect(await page.getByLabel("Reasoning effort").or(choose).count()).toBe(0);
    await page.getByLabel("Message").fill("[[tokens=10]] And now?");
    expect(await code()).toMatch(/"temperature":0\.5,"stream":true/);
    expect(await code()).not.toMatch(/base64|reasoning_effort/);
    await button("Send").press("Enter");
    await status.getByText("and 10 output tokens.").waitFor();
    expect(await generationsOf()).toMatchObject([{ model: "plain", images: 0n }, { images: 1n }]);
  });

  test("the playground streams, shows the exact cost, and prints a call that works", async () => {
    await signUp("play@example.com", "Play");
    await open("#/playground");
    await page.getByLabel("Model", { exact: true }).selectOption("vx-sandbox-small");
    await page.getByLabel("Message").fill("[[tokens=40]] It's");
    await button("curl")
      .or(page.getByText("curl", { exact: true }))
      .first()
      .waitFor();
    const command = await page.locator(".shown-command").innerText();
    await button("Send").press("Enter");
    await see(/^Cost: \$0\.\d+ for \d+ input and 40 output tokens/);
    const reply = await page.locator(".message-assistant .lines").innerText();
    expect(reply.length).toBeGreaterThan(40);
    await expectLooks();
    // The call is charged as the page says, and the key of the page is one of the account.
    const cost = (await page.locator("[role=status] strong").innerText()).slice(1);
    // The next reply does not begin with the text of the last one.
    await page.getByLabel("Message").fill("[[tokens=3 delay_ms=10000]] And now?");
    await button("Send").press("Enter");
    const messages = page.locator(".conversation li");
    expect(await messages.nth(3).locator(".lines").last().innerText()).toBe("");
    await button("Stop").click();
    await messages.nth(3).waitFor({ state: "detached" });
    await open("#/ledger?kind=generation");
    await see(new RegExp(`${cost.replace(".", "\\.")}`));
    await open("#/keys");
    await see("Playground");
    await button("Create key").click();
    await dialog().getByLabel("Name").fill("mine");
    await inDialog("Create key").click();
    const secret = await page.locator(".shown-secret").innerText();
    const { stdout } = await run("sh", ["-c", command.replace("curl ", "curl --silent ")], {
      env: { ...process.env, VX_KEY: secret },
    });
    expect(stdout).toMatch(/"done":.*"output_tokens":40/);
    await inDialog("Done").click();

    await open("#/usage");
    await page.getByRole("img", { name: "Cost by day and model" }).waitFor();
    await expectLooks();
    await page.getByText("Models: all").click();
    await page.getByRole("checkbox", { name: "vx-sandbox-small" }).check();
    await see("Models: 1");
    await expectLooks();
    expect(new URL(page.url()).hash).toContain("models=vx-sandbox-small");
    await page.getByText("Show as table").click();
    await page.getByRole("table", { name: "Cost by day and model" }).getByRole("button").last().press("Enter");
    await see("Back to 30 days");
    const today = new Date().toISOString().slice(0, 10);
    expect(new URL(page.url()).hash).toContain(`from=${today}&to=${today}`);
  });

  test("an invitation survives the sign-in, is accepted once, and gives the role", async () => {
    await signUp("owner@example.com", "Team");
    const hash = await invite("viewer");
    await signIn("viewer@example.com", hash);
    await heading("You are invited");
    expect(page.url()).toBe(`${app.url}/account`);
    await expectLooks();
    await button("Accept invitation").press("Enter");
    await heading("Overview");
    await open("#/keys");
    await see("No keys");
    await button("Create key").press("Enter");
    await see("This needs the role “developer” or “owner”. Your role is “viewer”.");
    expect(await dialog().count()).toBe(0);
    await open("#/members");
    await see("owner@example.com");
    await see("viewer@example.com");
    await expectLooks();
    await button("Leave").click();
    await inDialog("Leave account").click();
    await heading("Create your account");

    await signIn("late@example.com", hash);
    await button("Accept invitation").click();
    await see(/invitation/);
    await page.getByRole("alert").waitFor();
    await button("Ignore").click();
    await heading("Create your account");
  });

  test("an owner changes roles and removes members, and the activity shows it", async () => {
    await signUp("boss@example.com", "Works");
    const hash = await invite("developer", "dev@example.com");
    await see("Open invitations");
    await signIn("dev@example.com", hash);
    await button("Accept invitation").click();
    await heading("Overview");
    await signIn("boss@example.com", "#/members");
    await open("#/members");
    await button("Change role of dev@example.com").press("Enter");
    await dialog().getByLabel("Role").selectOption("billing");
    await expectLooks();
    await inDialog("Save").press("Enter");
    await see("The role is changed.");
    await button("Remove dev@example.com").press("Enter");
    await inDialog("Remove member").press("Enter");
    await see("The member is removed.");
    await open("#/activity");
    await see("Remove member");
    await see("Set member role");
    await see(/role: billing/);
    // Of a usual length, in one line.
    expect((await page.locator(".address").first().boundingBox())?.height).toBeLessThan(30);
    await expectLooks();
    await page.getByLabel("Action").selectOption("SetMemberRole");
    await page.getByText("Remove member", { exact: true }).waitFor({ state: "hidden" });
    await page.getByLabel("Person").selectOption("boss@example.com");
    await page.getByLabel("From").fill("2026-01-01");
    expect(new URL(page.url()).hash).toMatch(/^#\/activity\?method=SetMemberRole&person=usr_\w{26}&from=2026-01-01$/);
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await expectLooks();
    // The last day is included.
    await page.getByLabel("Until").fill(await page.evaluate<string>("new Date().toLocaleDateString('sv')"));
    await page.evaluate("delete globalThis.showSaveFilePicker");
    await button("Download CSV").press("Enter");
    expect(await violations(page)).toEqual([]);
    const [saved] = await Promise.all([page.waitForEvent("download"), inDialog("Download").press("Enter")]);
    expect(saved.suggestedFilename()).toBe("activity.csv");
    expect(readFileSync(await saved.path(), "utf8")).toMatch(
      /^created_at,email,person_id,method,target,outcome,details\r\n[\d-]+T[\d:.]+Z,boss@example\.com,usr_\w{26},SetMemberRole,usr_\w{26},ok,"\{""role"":""billing""\}"\r\n$/,
    );
    await page.getByLabel("Until").fill("2026-01-02");
    await see("No activity matches the filters");
    await page.getByRole("link", { name: "Show all activity" }).click();
    await see("Remove member");
    await open("#/events");
    await see("A member was removed or left");
    await see("A person joined with the role “developer”");
    await see("A person was invited with the role “developer”");
    // Each event is described: none has its type alone.
    expect(
      await page
        .getByRole("rowheader")
        .getByRole("button", { name: /^[a-z]+\./ })
        .count(),
    ).toBe(0);
    await open("#/members");
    await button("Rename account").press("Enter");
    await dialog().getByLabel("Name").fill("New name");
    await inDialog("Rename").press("Enter");
    await page.getByText("New name").first().waitFor();
  });

  test("a person with several accounts chooses one, and the choice is kept", async () => {
    await signUp("one@example.com", "First account");
    const hash = await invite("owner");
    await signUp("two@example.com", "Second account");
    await open(hash);
    await button("Accept invitation").click();
    await heading("Overview");
    const switcher = page.getByLabel("Account", { exact: true });
    expect(await switcher.locator("option:checked").innerText()).toBe("First account");
    await page.reload();
    await switcher.selectOption("Second account");
    await heading("Overview");
    await page.reload();
    await heading("Overview");
    expect(await switcher.locator("option:checked").innerText()).toBe("Second account");
    await page.evaluate("localStorage.clear()");
    await page.reload();
    await heading("Choose an account");
    await expectLooks();
    await button(/First account/).press("Enter");
    await heading("Overview");
  });

  test("a page that is open when its account is closed says so, also after a reload, and has the last statement", async () => {
    await signUp("ivo@example.com", "Ivo's");
    await see("$5.00");
    const operator = operatorOf(app);
    const { accounts } = await operator.listAccounts({ search: "Ivo's" });
    const accountId = accounts[0]?.id ?? "";
    while (!(await operator.closeAccount({ accountId, reason: "left", balance: "written_off" })).closed);
    await button("Refresh").click();
    await heading("Your account was closed");
    expect(await page.getByText("$5.00").count()).toBe(0);
    await page.reload();
    await heading("Your account was closed");
    await see(accountId);
    await button("Show the last statement").click();
    await page.getByRole("row", { name: /Closing balance/ }).waitFor();
    await button("Download CSV").waitFor();
    await expectLooks();
    await button("Create another account").click();
    await page.getByLabel("Name of the account").fill("Ivo's second");
    await page.keyboard.press("Enter");
    await heading("Overview");
    await page.reload();
    await heading("Overview");
  });

  test("signs out, and ends the session of another browser", async () => {
    await signUp("sessions@example.com", "Sessions");
    await signIn("sessions@example.com");
    await heading("Overview");
    await open("#/sessions");
    await see("This one");
    await button(/^Sign out 127/).press("Enter");
    await see("The session is ended.");
    await button(/^Sign out 127/).waitFor({ state: "detached" });
    await button("Sign out").press("Enter");
    await page.getByLabel("API key").waitFor();
    await page.reload();
    await page.getByLabel("API key").waitFor();
  });

  test("an operator invites a member, and views the page of the account, but can change nothing", async () => {
    const email = "<b>seen</b>@example.com";
    await signUp(email, "Seen");
    const { accounts } = await operatorOf(app).listAccounts({ search: email });
    await browser.clearCookies();
    await page.goto(`${app.adminUrl}/#/accounts?id=${accounts[0]?.id}&tab=members`);
    await page.getByLabel("Operator token").fill(OPERATOR_TOKEN);
    await page.keyboard.press("Enter");
    await see(email);
    await button("Invite").press("Enter");
    await dialog().getByLabel("E-mail address").fill("next@example.com");
    await dialog().getByLabel("Reason").fill("a ticket");
    await inDialog("Create link").press("Enter");
    expect(await shownLink()).toMatch(/^#\/invitation\?token=inv_/);
    await see("next@example.com");
    await expectLooks();
    await page.goto(`${app.adminUrl}/#/log?account=${accounts[0]?.id}`);
    await see("Invited a person to Seen");
    await see("Signed up for Seen");
    await page.getByLabel("Action").selectOption("Sign up");
    await button("Signed up for Seen").press("Enter");
    await inDialog("Close").press("Enter");
    await page.goto(`${app.adminUrl}/#/accounts?id=${accounts[0]?.id}&tab=members`);
    await button("View customer page").press("Enter");
    await dialog().getByLabel("Reason").fill("a ticket");
    await inDialog("Continue").press("Enter");
    const url = await page.getByRole("link", { name: "Open the page of “Seen”" }).getAttribute("href");
    await open(new URL(url ?? "").hash);
    await heading("Overview");
    await see("You view the page of “Seen” as the operator");
    await expectLooks();
    await open("#/keys");
    await see("No keys");
    await button("Create key").press("Enter");
    await see("You view this page as an operator: you cannot change anything here.");
    await browser.clearCookies();
    await open(new URL(url ?? "").hash);
    await see("The link was used or has expired.");
  });

  test("a limit that an operator set is marked, and an owner has no buttons to change it", async () => {
    await signUp("greta@example.com", "Greta");
    const operator = operatorOf(app);
    const { accounts } = await operator.listAccounts({ search: "Greta" });
    const owner = { case: "accountId", value: accounts[0]?.id ?? "" } as const;
    await operator.setLimit({ owner, limit: { metric: "cost", window: "month", amount: 5_000_000n } });
    await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "Limits", exact: true }).click();
    await see("set by the operator");
    const limits = page.getByRole("table", { name: "Limits" });
    await limits.getByRole("row", { name: /Requests per minute.*Plan “free”.*each key.*20.*Counted for each key/ }).waitFor();
    await limits.getByRole("row", { name: /Active keys.*Plan “free”.*2.*0 active · 2 left/ }).waitFor();
    await button("Set limit").waitFor();
    expect(await page.getByRole("button", { name: /^(Change|Remove) / }).count()).toBe(0);
    await expectLooks();
  });
});
