import type { BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { MemberRole } from "../../src/domain/member.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { type CustomerApp, startCustomerApp } from "../support/customer.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { violations } from "./page-checks.ts";
import { personPage } from "./person-page.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

/** Chromium reports the status 401 by which the page knows that nobody is signed in, and refusals. */
const EXPECTED = /status of 40[13]/;

describe.skipIf(!chromiumPath)("who may sign up", () => {
  const profile = createTemporaryFolder("sign-up-browser");
  let invited: CustomerApp;
  let limited: CustomerApp;
  let app: CustomerApp;
  let browser: BrowserContext;
  let watched: WatchedPage;
  let page: Page;
  const { button, heading, see, open, signIn, createAccount } = personPage(() => ({ app, browser, page }));

  beforeAll(async () => {
    const support = { VX_SUPPORT_URL: "https://help.example.com" };
    invited = await startCustomerApp({ VX_SIGN_UP: "invite", ...support });
    limited = await startCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_DOMAINS: "example.com" });
    browser = await openBrowser(profile.path);
    const urls = [invited, limited].flatMap(({ url, provider }) => [url, provider.issuer]);
    watched = await openWatchedPage(browser, urls);
    page = watched.page;
  });
  afterAll(async () => {
    await browser?.close();
    await limited?.stop();
    await invited?.stop();
    profile.remove();
  });
  afterEach(() => expect(watched.complaints.filter((text) => !EXPECTED.test(text))).toEqual([]));

  test("a person with the link of an operator signs up; the link is in no address and works once", async () => {
    app = invited;
    const { url } = await operatorOf(app).createSignUpInvitation({ reason: "a new customer" });
    const { hash } = new URL(url);
    await signIn("ada@example.com", hash);
    expect(page.url()).not.toContain("token");
    await createAccount("Analytical Engines");
    await heading("Overview");
    await see("Make your first call");

    await signIn("bob@example.com", hash);
    await createAccount("Second");
    await page.getByRole("alert").waitFor();
    expect(await violations(page)).toEqual([]);
    await button("Ignore the invitation").click();
    await heading("You have no account yet");
    await page.reload();
    await heading("You have no account yet");
  });

  test("a person without a link is told whom to ask, and can look again", async () => {
    app = invited;
    await signIn("carol@example.com");
    await heading("You have no account yet");
    await see("carol@example.com");
    const support = page.getByRole("link", { name: "contact support" });
    expect(await support.getAttribute("href")).toBe("https://help.example.com");
    expect(await violations(page)).toEqual([]);
    const { url } = await operatorOf(app).createSignUpInvitation({ email: "carol@example.com", reason: "r" });
    await open(new URL(url).hash);
    await createAccount("Carol");
    await heading("Overview");
  });

  test("the link for another address is refused on the page", async () => {
    app = invited;
    const { url } = await operatorOf(app).createSignUpInvitation({ email: "dan@example.com", reason: "r" });
    await signIn("erin@example.com", new URL(url).hash);
    await createAccount("Erin");
    await page.getByRole("alert").waitFor();
    await button("Sign out").click();
    await page.getByLabel("API key").waitFor();
    await signIn("dan@example.com");
    await createAccount("Dan");
    await heading("Overview");
  });

  test("a person whose domain is not permitted reads why, and has no form", async () => {
    app = limited;
    await signIn("mallory@evil.example");
    await heading("You have no account yet");
    await see("evil.example is not among them");
    expect(await page.getByLabel("Name of the account").count()).toBe(0);
    expect(await violations(page)).toEqual([]);
    await signIn("grace@example.com");
    await createAccount("Grace");
    await heading("Overview");
  });

  test("a person whose address is not verified reads why, and signs up after it is", async () => {
    app = limited;
    await signIn("henry@example.com", "", false);
    await heading("You have no account yet");
    await see("The identity provider has not verified your e-mail address");
    expect(await page.getByLabel("Name of the account").count()).toBe(0);
    expect(await page.content()).not.toContain("henry@example.com");
    expect(await violations(page)).toEqual([]);
    await signIn("henry@example.com");
    await createAccount("Henry");
    await heading("Overview");
  });
});

const ROLES: readonly MemberRole[] = ["viewer", "developer", "billing", "owner"];

/** The actions on limits, payments, members and keys, and the roles that may use them. */
const ACTIONS: readonly (readonly [section: string, action: string | RegExp, roles: readonly MemberRole[]])[] = [
  ["limits", "Set limit", ["billing", "owner"]],
  ["limits", /^Change Cost per month/, ["billing", "owner"]],
  ["limits", /^Remove Cost per month/, ["billing", "owner"]],
  ["payments", "Add credit", ["billing", "owner"]],
  ["payments", "Start automatic top-ups", ["billing", "owner"]],
  ["members", "Rename account", ["owner"]],
  ["members", "Invite", ["owner"]],
  ["members", "Change role of boss@example.com", ["owner"]],
  ["members", "Leave", ["viewer", "developer", "billing", "owner"]],
  ["keys", "Create key", ["developer", "owner"]],
  ["keys", "Edit Production", ["developer", "owner"]],
  ["keys", "Rotate Production", ["developer", "owner"]],
  ["keys", "Revoke Production", ["developer", "owner"]],
  ["keys", "Edit Payments", ["owner"]],
  ["keys", "Rotate Payments", ["owner"]],
  ["keys", "Revoke Payments", ["owner"]],
];

describe.skipIf(!chromiumPath)("a member", () => {
  const profile = createTemporaryFolder("roles-browser");
  let stripe: FakeStripe;
  let app: CustomerApp;
  let browser: BrowserContext;
  let watched: WatchedPage;
  let page: Page;
  let links: Map<MemberRole, string>;
  const { button, dialog, inDialog, heading, see, open, signIn, signUp, invite } = personPage(() => ({ app, browser, page }));

  beforeAll(async () => {
    stripe = await FakeStripe.start();
    app = await startCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_PLAN: "pro", ...stripe.env });
    browser = await openBrowser(profile.path);
    watched = await openWatchedPage(browser, [app.url, app.provider.issuer]);
    page = watched.page;
    await browser.route(/^https:\/\/(checkout|billing)\.stripe\.com\//, (route) =>
      route.fulfill({ contentType: "text/html", body: "<!doctype html><title>Stripe</title>" }),
    );
    await signUp("boss@example.com", "Works");
    const { accounts } = await operatorOf(app).listAccounts({ search: "boss@example.com" });
    const accountId = accounts[0]?.id ?? "";
    await operatorOf(app).createKey({ accountId, name: "Production", scopes: ["generate", "read"] });
    await operatorOf(app).createKey({ accountId, name: "Payments", scopes: ["billing"] });
    await setLimit("5");
    links = new Map();
    for (const role of ROLES) links.set(role, await invite(role));
    await invite("viewer", "open@example.com");
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    await stripe?.stop();
    profile.remove();
  });
  afterEach(() => expect(watched.complaints.filter((text) => !EXPECTED.test(text))).toEqual([]));

  /** Of the cost per month. */
  async function setLimit(dollars: string): Promise<void> {
    await open("#/limits");
    await button("Set limit").click();
    await dialog().getByLabel("Amount", { exact: true }).fill(dollars);
    await inDialog("Set limit").click();
    await see("The limit is set.");
  }

  /** Uses the invitation of the role the first time. */
  async function signInAs(role: MemberRole): Promise<void> {
    await signIn(`${role}@example.com`, links.get(role));
    if (links.delete(role)) await button("Accept invitation").click();
    await heading("Overview");
  }

  test.each(ROLES)("with the role %s sees every action, and can use exactly those of the role", async (role) => {
    await signInAs(role);
    let opened = "";
    for (const [section, action, roles] of ACTIONS) {
      if (opened !== section) await open(`#/${section}`);
      opened = section;
      const one = page.getByRole("button", { name: action, exact: typeof action === "string" });
      // Buttons that need data of the page are disabled until it is loaded.
      await page.locator(".skeleton, [aria-busy=true]").first().waitFor({ state: "detached" });
      await page.locator("button:not([disabled])").and(one).waitFor();
      const isAllowed = roles.includes(role);
      expect([action, await one.getAttribute("aria-disabled")]).toEqual([action, isAllowed ? null : "true"]);
      await one.press("Enter");
      if (isAllowed) {
        await dialog().waitFor();
        await page.keyboard.press("Escape");
        await dialog().waitFor({ state: "detached" });
      } else {
        await see(/Your role is “\w+”\.|which your role does not cover/);
        expect([action, await dialog().count()]).toEqual([action, 0]);
      }
    }
    await open("#/members");
    await see("boss@example.com");
    const isOwner = role === "owner";
    expect(await page.getByRole("table", { name: "Open invitations" }).count()).toBe(isOwner ? 1 : 0);
  });

  test("a button keeps the focus when data of its page arrives", async () => {
    await signInAs("viewer");
    const held = Promise.withResolvers<void>();
    await page.route("**/*ListModels", async (route) => {
      await held.promise;
      await route.continue();
    });
    await open("#/limits");
    await button(/^Change Cost per month/).focus();
    const answered = page.waitForResponse("**/*ListModels");
    held.resolve();
    await (await answered).finished();
    await page.unroute("**/*ListModels");
    await page.evaluate("new Promise(requestAnimationFrame)");
    const focused = page.locator(":focus");
    expect(await focused.getAttribute("aria-label")).toMatch(/^Change Cost per month/);
  });

  test("with the role developer creates a key with the scopes of the role", async () => {
    await signInAs("developer");
    await open("#/keys");
    await button("Create key").click();
    await dialog().getByRole("group", { name: "Scopes" }).getByRole("checkbox").first().waitFor();
    const scopes = await dialog().getByRole("group", { name: "Scopes" }).getByRole("checkbox").all();
    expect(scopes).toHaveLength(4);
    for (const scope of scopes) await scope.check();
    await dialog().getByLabel("Name").fill("Mine");
    await see("At most the limit of the plan");
    await inDialog("Create key").click();
    const secret = await page.locator(".shown-secret").innerText();
    const answer = await fetch(`${app.url}/v1/account`, { headers: { authorization: `Bearer ${secret}` } });
    expect(await answer.json()).toMatchObject({ name: "Works", key: { scopes: ["generate", "read", "keys", "webhooks"] } });
    await inDialog("Done").click();
    await button("Revoke Mine").click();
    await inDialog("Revoke key").click();
    await see("The key “Mine” is revoked.");
  });

  test("with the role billing sets a limit and starts a payment", async () => {
    await signInAs("billing");
    await setLimit("3");
    await open("#/payments");
    await button("Add credit").click();
    await inDialog("Continue").click();
    await page.waitForURL(/^https:\/\/checkout\.stripe\.com\/c\/pay\/cs_test_/);
    await open("#/payments");
    await page.getByRole("link", { name: "Pay $25.00" }).waitFor();
  });

  test("with another role reads why it cannot manage cards", async () => {
    await signInAs("developer");
    await open("#/payments");
    await button("Cards and tax ids").press("Enter");
    await see("This needs the role “billing” or “owner”. Your role is “developer”.");
    expect(stripe.portals).toEqual([]);
  });

  test("with the role billing manages cards on a page of Stripe, and reads why that page is missing", async () => {
    await signInAs("billing");
    await open("#/payments");
    stripe.before = (request) => (request.includes("billing_portal") ? 400 : undefined);
    await button("Cards and tax ids").click();
    await see("The payment provider did not create the page.");
    stripe.before = () => undefined;
    const complaints = watched.complaints.splice(0).filter((text) => !EXPECTED.test(text));
    expect(complaints).toEqual([expect.stringContaining("503 (Service Unavailable)")]);
    await button("Cards and tax ids").press("Enter");
    await page.waitForURL(/^https:\/\/billing\.stripe\.com\/p\/bps_/);
    expect(page.url()).toBe(stripe.portals.at(-1)?.url);
  });

  test("with the role owner changes a role, and the member has it at once", async () => {
    await signInAs("owner");
    await open("#/members");
    await button("Change role of viewer@example.com").click();
    await dialog().getByLabel("Role").selectOption("billing");
    await inDialog("Save").click();
    await see("The role is changed.");
    await signInAs("viewer");
    await open("#/limits");
    await button("Set limit").click();
    await dialog().waitFor();
  });
});
