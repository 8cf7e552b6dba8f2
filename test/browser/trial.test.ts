import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { BrowserContext, Locator, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { type CustomerApp, startCustomerApp } from "../support/customer.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { unusedPort } from "../support/unused-port.ts";
import { violations } from "./page-checks.ts";
import { personPage } from "./person-page.ts";
import { openWatchedPage, type WatchedPage } from "./watched-page.ts";

const run = promisify(execFile);

/**
 * The keystroke-level model of Card, Moran and Newell: what a person needs for a click, with its decision and the way to the
 * target, and for each typed character.
 */
const CLICK_SECONDS = 1.35 + 1.1 + 0.2;
const KEY_SECONDS = 0.28;
/** To read a new page or dialog and find what comes next. */
const READ_SECONDS = 3;
/** Of the machine, with a browser on a busy one. */
const MAX_MACHINE_SECONDS = 30;
const MAX_SECONDS = 120;

const CREDIT_MICROS = 1_000n;
const PAID_MICROS = 25_000_000n;

/** The hand of a new customer, whose time is estimated. */
class Hand {
  seconds = 0;

  async click(target: Locator): Promise<void> {
    this.seconds += READ_SECONDS + CLICK_SECONDS;
    await target.click();
  }

  async type(target: Locator, text: string): Promise<void> {
    this.seconds += CLICK_SECONDS + text.length * KEY_SECONDS;
    await target.fill(text);
  }

  /** Pastes a command into a terminal, whose window is opened and closed. */
  async paste(command: string): Promise<string> {
    this.seconds += READ_SECONDS + 3 * CLICK_SECONDS;
    return (await run("sh", ["-c", command])).stdout;
  }
}

describe.skipIf(!chromiumPath)("a new customer", () => {
  const profile = createTemporaryFolder("trial-browser");
  let stripe: FakeStripe;
  let app: CustomerApp;
  let browser: BrowserContext;
  let watched: WatchedPage;
  let page: Page;
  const { button, inDialog, heading, see } = personPage(() => ({ app, browser, page }));

  beforeAll(async () => {
    stripe = await FakeStripe.start();
    const port = String(await unusedPort());
    app = await startCustomerApp({
      ...stripe.env,
      PORT: port,
      VX_PUBLIC_URL: `http://127.0.0.1:${port}`,
      VX_SIGN_UP: "open",
      VX_SIGN_UP_CREDIT: "0.001",
      VX_SIGN_UP_CREDIT_DAYS: "30",
    });
    browser = await openBrowser(profile.path);
    watched = await openWatchedPage(browser, [app.url, app.provider.issuer]);
    page = watched.page;
    await browser.route("https://checkout.stripe.com/**", checkout);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    await stripe?.stop();
    profile.remove();
  });

  /** The page of Stripe: with a stored card, one button pays. */
  async function checkout(route: Route): Promise<void> {
    const request = route.request();
    const session = stripe.sessionAt(request.url());
    if (request.method() === "POST") {
      const events = stripe.pay(session.client_reference_id);
      await route.fulfill({ status: 303, headers: { location: session.success_url } });
      for (const event of events) await stripe.deliver(event, app.url);
      return;
    }
    const amount = `$${(session.amount_total / 100).toFixed(2)}`;
    const body = `<!doctype html><title>Checkout</title><h1>vx credit</h1><p>visa •••• 4242</p>
      <form method="post"><button>Pay ${amount}</button></form>`;
    await route.fulfill({ contentType: "text/html; charset=utf-8", body });
  }

  test("comes from an empty browser to the first call that is paid for, in less than two minutes", async () => {
    const hand = new Hand();
    const email = "ada@example.com";
    Object.assign(app.provider.behaviour, { subject: "ada", email, emailVerified: true });
    const startedAt = performance.now();
    await page.goto(app.url);
    await hand.click(page.getByRole("link", { name: "Sign in or sign up" }));
    await hand.click(page.getByRole("main").getByRole("link", { name: "Sign in or sign up" }));
    await heading("Create your account");
    await hand.type(page.getByLabel("Name of the account"), "Analytical Engines");
    await hand.click(button("Create account"));
    await heading("Overview");

    await hand.click(button("Create key"));
    const command = await page.locator(".shown-command").innerText();
    await hand.click(inDialog("Copy command"));
    const reply = JSON.parse(await hand.paste(command.replace("curl ", "curl --silent ")));
    expect(reply).toMatchObject({ message: { role: "assistant" } });
    await hand.click(inDialog("Done"));

    await hand.click(page.getByRole("link", { name: "Add credit" }));
    await hand.click(inDialog("Continue"));
    await hand.click(page.getByRole("button", { name: "Pay $25.00" }));
    await heading("Payments");
    await see("$25.00 is credited.");
    await page.getByRole("cell", { name: "Credited" }).waitFor();

    await hand.click(page.getByRole("navigation").getByRole("link", { name: "Playground" }));
    await hand.type(page.getByLabel("Message"), "[[tokens=1000]] Tell me of engines");
    await hand.click(button("Send"));
    await see(/^Cost: \$0\.\d+ for \d+ input and 1,000 output tokens/);
    const machineSeconds = (performance.now() - startedAt) / 1_000;

    const { accounts } = await operatorOf(app).listAccounts({ search: email });
    const accountId = accounts[0]?.id ?? "";
    const { entries } = await operatorOf(app).listLedgerEntries({ accountId });
    const [last, payment, first, credit] = entries;
    expect(entries.map(({ kind }) => kind)).toEqual(["generation", "topup", "generation", "credit"]);
    expect([credit?.amountMicros, payment?.amountMicros]).toEqual([CREDIT_MICROS, PAID_MICROS]);
    // The first call used the starting credit, and the last one what was left of it, then the money that was paid.
    expect(credit?.balanceAfterMicros).toBeGreaterThan(-(first?.amountMicros ?? 0n));
    expect(last?.balanceAfterMicros).toBeLessThan(PAID_MICROS);
    const grants = await app.database.owner`
      SELECT FROM vx.accounts a, vx.account_grants(a.lane, a.id) g WHERE a.id = ${accountId} AND g.entry_id IS NOT NULL`;
    expect(grants).toHaveLength(0);
    console.info(`person ${hand.seconds.toFixed(0)} s, machine ${machineSeconds.toFixed(1)} s`);
    expect(machineSeconds).toBeLessThan(MAX_MACHINE_SECONDS);
    expect(machineSeconds + hand.seconds).toBeLessThan(MAX_SECONDS);
    expect(watched.complaints.filter((text) => !/status of 401/.test(text))).toEqual([]);
  });

  test("returns from the payment to a page that shows it until it is confirmed, and after a reload no more", async () => {
    await page.goto(`${app.url}/account#/payments?add=credit`);
    await inDialog("Continue").click();
    await page.getByRole("button", { name: "Pay $25.00" }).waitFor();
    const session = stripe.sessionAt(page.url());
    await page.goto(session.success_url);
    await see("Your payment of $25.00 is being confirmed.");
    expect(new URL(page.url()).search).toBe("");
    expect(await violations(page)).toEqual([]);
    for (const event of stripe.pay(session.client_reference_id)) await stripe.deliver(event, app.url);
    await see("$25.00 is credited.");
    expect(await violations(page)).toEqual([]);
    await page.reload();
    await page.getByRole("cell", { name: "Credited" }).first().waitFor();
    expect(await page.getByText("is credited.").count()).toBe(0);
    await page.goto(`${app.url}/account#/activity`);
    await see("Amount: $25.00");
  });

  test("whose credit is used up reads so in the playground, keeps the text, and finds the way to pay", async () => {
    const { accounts } = await operatorOf(app).listAccounts({ search: "ada@example.com" });
    const [account] = accounts;
    await operatorOf(app).adjustAccount({
      accountId: account?.id ?? "",
      amountMicros: -(account?.balanceMicros ?? 0n),
      reason: "used up",
      idempotencyKey: "used-up",
    });
    await page.goto(`${app.url}/account#/playground`);
    await page.getByLabel("Message").fill("Still there?");
    await button("Send").click();
    await see("The balance is too low");
    expect(await page.getByLabel("Message").inputValue()).toBe("Still there?");
    expect(await page.locator(".message-user").count()).toBe(0);
    expect(await violations(page)).toEqual([]);
    await page.getByRole("link", { name: "Add credit" }).click();
    await inDialog("Continue").waitFor();
  });
});
