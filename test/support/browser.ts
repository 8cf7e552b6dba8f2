import { existsSync } from "node:fs";
import { type BrowserContext, chromium } from "playwright-core";

const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"];

/** The path of the installed Chromium, if there is one. */
export const chromiumPath = PLACES.find((place) => place !== undefined && existsSync(place));

const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A browser with its own profile and without background requests. */
export async function openBrowser(userDataDir: string): Promise<BrowserContext> {
  return await chromium.launchPersistentContext(userDataDir, {
    executablePath: chromiumPath ?? "",
    headless: true,
    // Certificates of the tests are self-signed.
    ignoreHTTPSErrors: true,
    args: QUIET,
  });
}
