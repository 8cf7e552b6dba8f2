import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Role } from "../../src/domain/operator.ts";
import { OPERATOR_TOKEN, startTestApp } from "../support/app.ts";
import { chromiumPath } from "../support/browser.ts";
import { createTestAccount, operatorOf } from "../support/fixtures.ts";
import { OperatorConsole } from "./operator-console.ts";

describe.skipIf(!chromiumPath)("a session of the operator console", () => {
  let console: OperatorConsole;
  let operators = 0;

  beforeAll(async () => {
    console = await OperatorConsole.start();
  });
  afterAll(() => console?.stop());
  beforeEach(() => {
    console.complaints.length = 0;
  });

  async function createOperator(role: Role): Promise<{ id: string; token: string }> {
    const name = `operator ${++operators}`;
    const { operator, secret } = await operatorOf(console.app).createOperator({ name, role });
    return { id: operator?.id ?? "", token: secret };
  }

  test("does not start with an unknown token", async () => {
    const { page, app } = console;
    await page.goto(app.adminUrl);
    await page.getByLabel("Operator token").fill("vxo_unknown");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("Not signed in").waitFor();
    expect(await page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
  });

  test("of a viewer says which role each action needs, and calls nothing", async () => {
    const { page } = console;
    const { token } = await createOperator("viewer");
    const accountId = await createTestAccount(operatorOf(console.app));
    await console.signIn(token, `/#/accounts?id=${accountId}`);
    await console.loaded();
    for (const [action, role] of [
      ["Credit", "finance"],
      ["Suspend", "support"],
    ] as const) {
      const button = page.getByRole("button", { name: action });
      expect(await button.getAttribute("aria-disabled")).toBe("true");
      // Playwright does not click elements that are disabled.
      await button.focus();
      await page.keyboard.press("Enter");
      await console.seen(`This needs the role “${role}”. Your role is “viewer”.`);
      expect(await page.getByRole("dialog").count()).toBe(0);
    }
    expect(console.complaints).toEqual([]);
  });

  test("of a role that the server does not accept shows why the change was refused", async () => {
    const { page } = console;
    const { token } = await createOperator("viewer");
    // The page gets a role with more rights than the server grants.
    await page.route("**/auth/session", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace('"viewer"', '"admin"') });
    });
    await console.signIn(token, "/#/plans");
    await page.unroute("**/auth/session");
    await page.getByRole("button", { name: "Edit free" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").fill("test");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").getByText("Your role does not allow this").waitFor();
    expect(await dialog.getByRole("alert").innerText()).toContain('requires the role "admin"');
  });

  test("ends with a sign-in that says why, when the operator is revoked", async () => {
    const { id, token } = await createOperator("support");
    await console.signIn(token);
    await console.seen("Live");
    await operatorOf(console.app).revokeOperator({ operatorId: id });
    await console.page.getByRole("link", { name: "Accounts" }).click();
    await console.page.getByLabel("Operator token").waitFor();
    await console.page.getByRole("note").waitFor();
  });

  test("a disconnected server: a banner, then live figures again", async () => {
    const { page, app } = console;
    const port = new URL(app.adminUrl).port;
    const own = await startTestApp({ env: { VX_ADMIN_PORT: "0" }, database: app.database });
    const place = new URL(own.adminUrl);
    expect(place.port).not.toBe(port);
    await page.goto(own.adminUrl);
    await page.getByLabel("Operator token").fill(OPERATOR_TOKEN);
    await page.keyboard.press("Enter");
    await console.seen("Live");
    await own.stop();
    await page.getByRole("alert").getByText("The connection to the server is lost.").waitFor();
    await console.seen("Not connected");
    const again = await startTestApp({ env: { VX_ADMIN_PORT: place.port }, database: app.database });
    // The page also tries by itself, which can be first.
    await Promise.any([page.getByRole("button", { name: "Try now" }).click(), console.seen("Live")]);
    await console.seen("Live");
    expect(await page.getByRole("button", { name: "Try now" }).count()).toBe(0);
    await console.select("Plans");
    await console.seen("scale");
    await page.goto("about:blank");
    await again.stop();
  });
});
