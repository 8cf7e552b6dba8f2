import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { raw } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire } from "../support/fake-upstreams/wire.ts";
import { operatorOf, type TestKey } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { outside, violations } from "./page-checks.ts";

if (!chromiumPath) {
  console.error("SKIPPED: costs of entries were tested in no browser. Install chromium, or name one in CHROMIUM.");
}

const USAGE = {
  input_tokens: 1_003,
  cache_read_input_tokens: 7_001,
  cache_creation_input_tokens: 500,
  cache_creation: { ephemeral_1h_input_tokens: 200, ephemeral_5m_input_tokens: 300 },
  output_tokens: 41,
};
const REPLY = [
  { type: "message_start", message: { usage: USAGE } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: USAGE },
  { type: "message_stop" },
];

describe.skipIf(!chromiumPath)("the costs of a ledger entry", () => {
  const profile = createTemporaryFolder("entry-costs");
  let upstream: FakeUpstream;
  let file: ReturnType<typeof createModelsFile>;
  let app: TestApp;
  let key: TestKey;
  let browser: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    upstream = await FakeUpstream.start({ wire: anthropicWire });
    const { kind, baseUrl } = upstream.settings();
    const model = {
      id: "cached",
      context_window: 20_000,
      max_output_tokens: 1_000,
      prompt_overhead_tokens: { base: 10_000 },
      prices: {
        input: 3_000_000,
        cached_input: 300_001,
        cache_write: 3_750_000,
        cache_write_1h: 6_000_000,
        output: 15_000_000,
        request: 12,
      },
      upstream: { kind, base_url: baseUrl, model: "fake-model" },
    };
    file = createModelsFile(JSON.stringify({ models: [model] }));
    app = await startTestApp({ env: { VX_MODELS: file.path } });
    key = await createPaidKey(operatorOf(app));
    upstream.next(raw(REPLY.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")));
    const response = await fetch(`${app.url}/v1/generate`, {
      method: "POST",
      headers: { ...bearer(key.secret), "content-type": "application/json" },
      body: JSON.stringify({ model: "cached", messages: [{ role: "user", content: "Hi" }], max_tokens: 50 }),
    });
    expect(response.status).toBe(200);
    browser = await openBrowser(profile.path);
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    await upstream?.stop();
    file?.remove();
    profile.remove();
  });

  const PAGES = {
    "customer page": () => ({ url: `${app.url}/account#/ledger`, label: "API key", secret: key.secret }),
    console: () => ({ url: `${app.adminUrl}/#/ledger`, label: "Operator token", secret: OPERATOR_TOKEN }),
  };
  const LOOKS = [
    { width: 1280, height: 900, colorScheme: "light" },
    { width: 390, height: 844, colorScheme: "dark" },
  ] as const;
  const cases = Object.entries(PAGES).flatMap(([name, place]) =>
    LOOKS.map(({ colorScheme, ...size }) => ({ name, place, size, colorScheme })),
  );

  test.each(cases)(
    "add up to the charge on the $name at $size.width px, with the discount of the cache",
    async ({ place, size, colorScheme }) => {
      const { url, label, secret } = place();
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme });
      await page.goto("about:blank");
      await page.goto(url);
      await page.getByLabel(label).fill(secret);
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: /^Generation with/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Rounded up").waitFor();
      const rows = await dialog
        .locator(".details > div")
        .evaluateAll((all) =>
          all.map((row) => [row.firstElementChild, row.lastElementChild].map((part) => part?.textContent ?? "")),
        );
      const shown = new Map(rows.map(([name = "", value = ""]) => [name, value]));
      const costs = await dialog.locator(".cost > :last-child").allInnerTexts();
      // In millionths of a micro: 12 decimals.
      const exact = (text: string) => {
        const [, whole = "", decimals = ""] = /\$(\d+)\.?(\d*)$/.exec(text) ?? [];
        return BigInt(whole + decimals.padEnd(12, "0"));
      };
      const charged = 3_009n + 2_101n + 1_125n + 1_200n + 615n + 12n;
      expect(shown.get("Amount")).toBe(`-$0.00${charged}`);
      expect(costs.map(exact).reduce((sum, cost) => sum + cost)).toBe(charged * 1_000_000n);
      expect(Object.fromEntries(shown)).toMatchObject({
        "Input, not cached": "1,003 at $3.00 per million$0.003009",
        "Read from cache": "7,001 at $0.300001 per million$0.002100307001",
        "Written to cache": "300 at $3.75 per million$0.001125",
        "Written for 1 hour": "200 at $6.00 per million$0.0012",
        "Output tokens": "41 at $15.00 per million$0.000615",
        Request: "Price of each request$0.000012",
        "Rounded up": "To a multiple of $0.000001$0.000000692999",
        // 7,501 tokens at $3.00 per million, without what the cache cost.
        Cache: "Saved $0.018077692999, compared with the price of input",
      });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.width);
      expect(await outside(page, "dialog *")).toEqual([]);
      expect(await violations(page)).toEqual([]);
    },
  );
});
