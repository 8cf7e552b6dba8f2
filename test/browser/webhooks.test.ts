import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { chromiumPath } from "../support/browser.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { verified, WebhookReceiver } from "../support/webhook-receiver.ts";
import { HOSTILE_NAME } from "./account-data.ts";
import { OperatorConsole } from "./operator-console.ts";
import { CUT_OFF, outside, overlapping, violations } from "./page-checks.ts";

const WIDTHS = [320, 390, 768, 1024, 1280];

describe.skipIf(!chromiumPath)("webhooks on the pages", () => {
  let console: OperatorConsole;
  let receiver: WebhookReceiver;
  let key: TestKey;

  beforeAll(async () => {
    console = await OperatorConsole.start({ VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8", VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.0/8" });
  });
  afterAll(() => console?.stop());
  beforeEach(async () => {
    receiver = await new WebhookReceiver().start();
    key = await createTestKey(operatorOf(console.app), { scopes: ["read", "webhooks"] });
  });
  afterEach(() => receiver.stop());

  const main = () => console.page.getByRole("main");
  const press = (name: string) => main().getByRole("button", { name, exact: true }).click();
  const dialog = () => console.page.getByRole("dialog");

  async function signInAsCustomer(secret: string): Promise<void> {
    const { page, app } = console;
    await page.goto("about:blank");
    await page.goto(`${app.url}/account#/webhooks`);
    await page.getByLabel("API key").fill(secret);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Webhooks" }).waitFor();
  }

  /** Submits the open dialog, with a reason if it asks for one. */
  async function submit(action: string): Promise<void> {
    await dialog().getByRole("button", { name: action, exact: true }).waitFor();
    const reason = dialog().getByLabel("Reason");
    if ((await reason.count()) > 0) await reason.fill(`because of ${action}`);
    await dialog().getByRole("button", { name: action, exact: true }).click();
  }

  /** Creates a webhook and returns the secret, which the page shows once. */
  async function create(types: readonly string[] = []): Promise<string> {
    await press("Create webhook");
    await dialog().getByLabel("Address").fill(receiver.url());
    for (const type of types) await dialog().getByLabel(type, { exact: true }).check();
    await submit("Create webhook");
    return await takeSecret();
  }

  async function takeSecret(): Promise<string> {
    const { page } = console;
    const secret = await page.locator(".shown-secret").innerText();
    await dialog().getByRole("button", { name: "Copy secret" }).click();
    await dialog().getByRole("button", { name: "Copied" }).waitFor();
    await dialog().getByRole("button", { name: "Done" }).click();
    expect(await page.content()).not.toContain(secret);
    return secret;
  }

  const openWebhook = () => main().getByRole("link", { name: receiver.url() }).click();

  async function credit(accountId = key.accountId): Promise<void> {
    const idempotencyKey = `${receiver.received.length}-${receiver.port}`;
    await operatorOf(console.app).creditAccount({ accountId, amountMicros: 1n, reason: "test", idempotencyKey });
  }

  /** Loads the deliveries until a row has the text. */
  async function seenInRow(text: RegExp, row = 1): Promise<void> {
    const rows = main().getByRole("row");
    await expect
      .poll(async () => {
        await press("Refresh");
        await console.loaded();
        return (await rows.count()) > row ? await rows.nth(row).innerText() : "";
      })
      .toMatch(text);
  }

  async function expectGoodLook(): Promise<void> {
    const { page } = console;
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      expect(await outside(page, "main :not(.tabs a), dialog *")).toEqual([]);
      expect(await page.evaluate<string[]>(CUT_OFF)).toEqual([]);
      expect(await overlapping(page, "main", ":is(button, a, h1, h2, dd):not(dialog *)")).toEqual([]);
    }
    expect(await violations(page)).toEqual([]);
  }

  test("of a customer are created with a secret shown once, tested, paused, edited, rotated and deleted", async () => {
    await signInAsCustomer(key.secret);
    await console.seen("No webhooks");
    await press("Create webhook");
    await dialog().getByLabel("Address").fill("https://10.0.0.1/");
    await submit("Create webhook");
    await dialog()
      .getByText(/^url: The address is private/)
      .waitFor();
    await expectGoodLook();
    await console.page.keyboard.press("Escape");
    const secret = await create(["credit.posted"]);
    await expectGoodLook();

    await openWebhook();
    await press("Test");
    await dialog()
      .getByText(/^204 in [\d,]+ ms$/)
      .waitFor();
    await console.page.keyboard.press("Escape");
    const [tested] = await receiver.until(1);
    if (!tested) throw new Error("nothing was received");
    expect(verified(secret, tested).type).toBe("webhook.test");

    await press("Pause");
    await submit("Pause");
    await console.seen("The webhook is paused.");
    await credit();
    await console.seen("Paused");
    await press("Resume");
    await submit("Resume");
    await console.seen("The webhook is enabled.");
    await receiver.until(2);

    await press("Edit");
    await dialog().getByLabel("Description").fill(HOSTILE_NAME);
    await dialog().getByLabel("key.created", { exact: true }).check();
    await submit("Save");
    await console.seen("credit.posted, key.created");
    await press("Rotate secret");
    await submit("Rotate secret");
    const rotated = await takeSecret();
    await credit();
    const [, , third] = await receiver.until(3);
    if (!third) throw new Error("nothing was received");
    for (const valid of [secret, rotated]) expect(verified(valid, third).type).toBe("credit.posted");
    await console.seen(/^The previous secret works until/);

    await press("Delete");
    await submit("Delete webhook");
    await console.seen("No webhooks");
  });

  test("of a customer show their deliveries, which are sent again one by one or of a time", async () => {
    receiver.respond = (response) => response.writeHead(500).end(`${HOSTILE_NAME}${"y".repeat(900)}`);
    await signInAsCustomer(key.secret);
    await create(["credit.posted"]);
    await openWebhook();
    await console.seen("No deliveries");
    await credit();
    await seenInRow(/credit\.posted.*Pending.*1 attempt.*Next.*500 in \d+ ms.*<img src=x.*…/s);
    await expectGoodLook();
    await main().getByRole("button", { name: "credit.posted", exact: true }).click();
    expect(await dialog().innerText()).toMatch(/Attempts\s+1\s.*y{900}.*Event id\s+evt_\w+/s);
    await dialog().getByText("Show as JSON").click();
    const response = await fetch(`${console.app.url}/v1/events?order=desc&types=credit.posted&page_size=1`, {
      headers: { authorization: `Bearer ${key.secret}` },
    });
    const { events } = (await response.json()) as { events: unknown[] };
    expect(await dialog().locator("pre").innerText()).toBe(JSON.stringify(events[0], null, 2));
    await expectGoodLook();
    await console.page.keyboard.press("Escape");

    receiver.respond = (response) => response.writeHead(204).end();
    await main()
      .getByRole("button", { name: /^Send again credit\.posted \d+$/ })
      .click();
    await submit("Send again");
    await console.seen("The event is sent again.");
    await seenInRow(/Delivered.*204 in/s);
    await main().getByLabel("State").selectOption("failed");
    await console.seen("No deliveries");

    await press("Send a range again");
    await dialog().getByLabel("Until").fill("2020-01-01T00:00");
    await submit("Send again");
    await console.seen("Enter a later time, or nothing.");
    await expectGoodLook();
    await dialog().getByLabel("Until").fill("");
    await submit("Send again");
    await console.seen("0 events are sent again.");
  });

  test("and their events appear by themselves, and their deliveries while one is pending", async () => {
    const { page } = console;
    const rowsOf = (text: string) => main().getByRole("row").filter({ hasText: text });
    receiver.respond = (response) => response.writeHead(500).end();
    await signInAsCustomer(key.secret);
    await create(["credit.posted"]);
    await page.evaluate("location.hash = '#/events'");
    await rowsOf("key.created").first().waitFor();
    expect(await rowsOf("credit.posted").count()).toBe(0);
    await credit();
    await rowsOf("credit.posted").waitFor();

    await page.evaluate("location.hash = '#/webhooks'");
    await openWebhook();
    await rowsOf("Pending").waitFor();
    receiver.respond = (response) => response.writeHead(204).end();
    await rowsOf("Delivered").waitFor();

    await page.goto("about:blank");
    await console.signIn(undefined, `/#/accounts?id=${key.accountId}&tab=events`);
    await rowsOf("credit.posted").waitFor();
    await operatorOf(console.app).suspendAccount({ accountId: key.accountId, reason: "test" });
    await rowsOf("account.suspended").waitFor();
  });

  test("say which scope a key lacks", async () => {
    const { secret } = await createTestKey(operatorOf(console.app), { scopes: ["read"] });
    await signInAsCustomer(secret);
    await console.seen("This key cannot manage webhooks");
    await expectGoodLook();
  });

  test("of operators get the events of all accounts, and each change has a reason", async () => {
    const { page, app } = console;
    await page.setViewportSize({ width: 1280, height: 900 });
    await console.signIn(undefined, "/#/webhooks");
    const secret = await create(["credit.posted"]);
    await credit();
    const [received] = await receiver.until(1);
    if (!received) throw new Error("nothing was received");
    expect(verified(secret, received)).toMatchObject({ type: "credit.posted", account_id: key.accountId });
    await openWebhook();
    await seenInRow(/Delivered.*204 in/s);
    await main()
      .getByRole("button", { name: /^Send again credit\.posted \d+$/ })
      .click();
    await submit("Send again");
    await receiver.until(2);
    await press("Pause");
    await submit("Pause");
    await console.seen("The webhook is paused.");
    await expectGoodLook();
    await press("Delete");
    await submit("Delete webhook");
    await console.seen("No webhooks");
    const { events } = await operatorOf(app).listOperatorEvents({ pageSize: 4 });
    expect(events.map(({ method, reason }) => [method, reason])).toEqual([
      ["DeleteWebhook", "because of Delete webhook"],
      ["UpdateWebhook", "because of Pause"],
      ["Redeliver", "because of Send again"],
      ["CreditAccount", "test"],
    ]);
    await console.select("Log");
    await console.seen("Deleted a webhook");
  });

  test("of an account are on its page, and an operator without the role cannot change them", async () => {
    const { page, app } = console;
    await page.setViewportSize({ width: 1280, height: 900 });
    await console.signIn(undefined, `/#/accounts?id=${key.accountId}&tab=webhooks`);
    await create();
    await openWebhook();
    await credit();
    await seenInRow(/credit\.posted.*Delivered/s);
    expect(receiver.received).toHaveLength(1);
    const address = page.url();
    const { secret } = await operatorOf(app).createOperator({ name: "vera", role: "viewer", reason: "test" });
    await console.signIn(secret, new URL(address).hash.replace(/^/, "/"));
    await main().getByRole("button", { name: "Delete" }).click({ force: true });
    await console.seen("This needs the role “admin”. Your role is “viewer”.");
    expect(await dialog().count()).toBe(0);
  });

  test("cause no errors except those of refused calls", () => {
    expect(console.complaints.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  });
});
