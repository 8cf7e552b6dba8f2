import type { BrowserContext, Page } from "playwright-core";

/** A page whose errors, and whose requests to other hosts than the given ones, are recorded. */
export type WatchedPage = {
  readonly page: Page;
  /** Errors and warnings of the console, among them violations of the Content-Security-Policy. */
  readonly complaints: string[];
  readonly foreign: readonly string[];
};

/** Requests to other hosts are aborted. */
export async function openWatchedPage(browser: BrowserContext, urls: readonly string[]): Promise<WatchedPage> {
  const complaints: string[] = [];
  const foreign: string[] = [];
  const hosts = urls.map((url) => new URL(url).host);
  await browser.route("**", async (route) => {
    const { host, protocol } = new URL(route.request().url());
    if (hosts.includes(host) || protocol === "data:") return await route.continue();
    foreign.push(route.request().url());
    await route.abort();
  });
  const page = await browser.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return { page, complaints, foreign };
}
