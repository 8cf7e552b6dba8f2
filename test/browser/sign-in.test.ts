import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { operatorOf } from "../support/fixtures.ts";
import { CLIENT, IdentityProvider } from "../support/identity-provider.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

describe.skipIf(!chromiumPath)("sign-in with OpenID Connect in a browser", () => {
  const profile = createTemporaryFolder("browser");
  let app: TestApp;
  let provider: IdentityProvider;
  let browser: BrowserContext;
  let page: Page;
  /** Another site than the provider's, which is an address. */
  let own: string;

  beforeAll(async () => {
    provider = await IdentityProvider.start();
    app = await startTestApp({
      env: { VX_OIDC_ISSUER: provider.issuer, VX_OIDC_CLIENT_ID: CLIENT.id, VX_OIDC_CLIENT_SECRET: CLIENT.secret },
    });
    own = `http://localhost:${new URL(app.adminUrl).port}`;
    provider.register(`${own}/auth/callback`);
    await operatorOf(app).createOperator({ name: "ada", role: "admin", email: "ada@example.com" });
    browser = await openBrowser(profile.path);
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await app?.stop();
    await provider?.stop();
    profile.remove();
  });

  /** Creates an operator from the page that is open; returns the status, or the error of the browser. */
  async function createOperator(name: string, headers: Record<string, string>): Promise<number | string> {
    return await page.evaluate(
      async ([url, body, sent]) => {
        const mode = "connect-protocol-version" in sent ? "cors" : "no-cors";
        const options = { method: "POST", headers: sent, body, mode, credentials: "include" } as const;
        return await fetch(url, options).then(
          ({ status }) => status,
          (error: Error) => error.message,
        );
      },
      [`${own}/vx.admin.v1.AdminService/CreateOperator`, JSON.stringify({ name, role: "admin" }), headers] as const,
    );
  }

  async function operatorNames(): Promise<string[]> {
    return (await operatorOf(app).listOperators({})).operators.map(({ name }) => name);
  }

  const connect = { "content-type": "application/json", "connect-protocol-version": "1" };

  test("the session works in pages of the listener, and in no other page", async () => {
    await page.goto(`${own}/auth/sign-in`);
    expect(page.url()).toBe(`${own}/`);
    const session = await page.evaluate(async () => await (await fetch("/auth/session")).json());
    expect(session).toMatchObject({ operator: { name: "ada", role: "admin" } });
    expect(await page.evaluate("document.cookie")).toBe("");
    expect(await createOperator("own", connect)).toBe(200);

    // The public listener is the same site, because sites have no ports: browsers send the cookie.
    const sameSite = `http://localhost:${new URL(app.url).port}/livez`;
    for (const foreign of [sameSite, `${provider.issuer}/.well-known/openid-configuration`]) {
      await page.goto(foreign);
      expect(await createOperator("foreign", connect)).toBe("Failed to fetch");
      expect(await createOperator("foreign", { "content-type": "text/plain" })).toBe(0);
    }
    expect(await operatorNames()).toEqual(["own", "ada"]);
    await page.goto(own);
    const signedOut = await page.evaluate(async () => (await fetch("/auth/sign-out", { method: "POST" })).status);
    expect(signedOut).toBe(200);
    expect(await createOperator("late", connect)).toBe(401);
  });

  test("the console offers it, shows who is signed in, and signs out", async () => {
    await page.goto(own);
    await page.getByRole("link", { name: "Sign in with OpenID Connect" }).click();
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText("ada", { exact: true }).waitFor();
    // A session that the server did not end still works.
    await page.route("**/auth/sign-out", (route) => route.abort());
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("The server did not end your session.").waitFor();
    await page.unroute("**/auth/sign-out");
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Operator token").waitFor();
    expect(await page.getByText("The server did not end your session.").count()).toBe(0);
    await page.reload();
    await page.getByLabel("Operator token").waitFor();
  });
});
