import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { BrowserContext, Page } from "playwright-core";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { insertFailures } from "./account-data.ts";

if (!chromiumPath) {
  console.error("SKIPPED: the console was tested in no browser. Install chromium, or name one in CHROMIUM.");
}

/** The operator console in a browser. */
export class OperatorConsole {
  readonly app: TestApp;
  readonly page: Page;
  /** Errors and warnings of the browser, violations of the Content-Security-Policy among them. */
  readonly complaints: string[] = [];
  readonly #browser: BrowserContext;
  readonly #profile: { remove(): void };

  private constructor(app: TestApp, browser: BrowserContext, page: Page, profile: { remove(): void }) {
    this.app = app;
    this.#browser = browser;
    this.page = page;
    this.#profile = profile;
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
  }

  static async start(env: Record<string, string> = {}): Promise<OperatorConsole> {
    const profile = createTemporaryFolder("console");
    const [app, browser] = await Promise.all([startTestApp({ env }), openBrowser(profile.path)]);
    return new OperatorConsole(app, browser, await browser.newPage(), profile);
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    await this.app.stop();
    this.#profile.remove();
  }

  /** Opens the console, without a session, and signs in. */
  async signIn(token = OPERATOR_TOKEN, path = "/"): Promise<void> {
    await this.page.goto("about:blank");
    await this.page.goto(this.app.adminUrl + path);
    await this.page.getByLabel("Operator token").fill(token);
    await this.page.keyboard.press("Enter");
    await this.page.getByRole("heading", { level: 1, name: /^(?!Operator console)/ }).waitFor();
  }

  /** Selects a section of the navigation. */
  async select(name: string): Promise<void> {
    const menu = this.page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    const nav = this.page.getByRole("navigation", { name: "Sections" });
    await nav.getByRole("link", { name, exact: true }).click();
    await this.page.locator(".frame-nav [aria-current=page]", { hasText: name }).waitFor({ state: "attached" });
    await this.loaded();
  }

  /** Waits until the page shows a heading, and nothing that is being loaded. */
  async loaded(): Promise<void> {
    await this.page.getByRole("heading", { level: 1 }).waitFor();
    await this.page.locator(".skeleton, [aria-busy=true]").first().waitFor({ state: "detached" });
  }

  /** Waits for a text that is visible. */
  async seen(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).filter({ visible: true }).first().waitFor();
  }

  /** The visible text of the current section. */
  async text(): Promise<string> {
    return await this.page.getByRole("main").innerText();
  }
}

export const MARKUP = `<img src=x onerror="alert(1)"> & <script>alert(2)</script>`;

/** Ten thousand accounts; the newest one has a name with markup, keys, entries and notes. */
export async function fillDatabase({ app }: OperatorConsole): Promise<TestKey> {
  await app.database.owner`
    INSERT INTO vx.accounts (lane, id, name, plan, created_at)
    SELECT vx.lane_of(id), id, 'account ' || i, 'free', now() - i * interval '1 minute'
    FROM (SELECT 'acct_' || lpad(i::text, 26, '0') AS id, i FROM generate_series(1, 10000) i) s`;
  const operator = operatorOf(app);
  const key = await createTestKey(operator);
  const { accountId } = key;
  await operator.updateAccount({
    accountId,
    name: MARKUP,
    externalId: `crm-${MARKUP}`.slice(0, 100),
    email: "billing@acme.example",
    notes: `${MARKUP}\nsecond line`,
    reason: MARKUP,
  });
  for (const amountMicros of [25_000_000n, 1_234_567_890_123n]) {
    await operator.creditAccount({ accountId, amountMicros, reason: MARKUP, idempotencyKey: `credit-${amountMicros}` });
  }
  await app.database.owner`
    INSERT INTO vx.usage_quarters
    SELECT vx.lane_of(${accountId}), ${accountId}, extract(epoch FROM now())::bigint / 900 - 96 * d, ${key.id},
           'acme-' || m, '', 1, d + 1, (d + m) * 1000, 0, 0, (d * m) * 700, 0, 0, 0, (d * m + 9) * 97700
    FROM generate_series(0, 40) d, generate_series(1, 8) m`;
  await insertFailures(app, key);
  await operator.creditAccount({
    accountId,
    amountMicros: 5_000_000n,
    reason: MARKUP,
    idempotencyKey: "welcome",
    promotional: true,
    expiresAt: timestampFromDate(new Date("2099-02-01T00:00:00Z")),
  });
  await app.database.owner`
    INSERT INTO vx.topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at, payment_id, refunded_micros,
      disputed_micros, problem, is_automatic, failure)
    SELECT vx.lane_of(${accountId}), 'top_' || substr(${accountId}, 6, 25) || i, ${accountId}, state::vx.topup_state,
      i * 25000000, 'usd', '', now() - (7 - i) * interval '1 hour', 'pi_' || repeat('0', 23) || i, refunded * 1000000, disputed * 1000000,
      problem, failure <> '', failure
    FROM (VALUES (1, 'pending', 0, 0, '', ''), (2, 'pending', 0, 0, 'amount', ''), (3, 'paid', 1, 0, '', ''),
      (4, 'failed', 0, 0, '', 'insufficient_funds'), (5, 'expired', 0, 0, '', ''), (6, 'disputed', 1, 149, '', ''))
      AS t (i, state, refunded, disputed, problem, failure)`;
  await operator.createKey({ accountId, name: MARKUP, scopes: ["read"] });
  await operator.createOperator({ name: MARKUP, role: "viewer", email: "viewer@acme.example", reason: MARKUP });
  return key;
}
