import { describe, expect, test } from "vitest";
import { fingerprintOf } from "../../../src/domain/credentials.ts";
import { startTestApp } from "../../support/app.ts";
import { BrowserJar } from "../../support/browser-jar.ts";
import { Customer, callbackOf, tokenOf, untilWaiting, useCustomerApp } from "../../support/customer.ts";
import { type Operator, operatorOf } from "../../support/fixtures.ts";
import { CLIENT } from "../../support/identity-provider.ts";
import { sendHttp1 } from "../../support/raw.ts";

const app = useCustomerApp({ VX_SIGN_UP: "open" });

function fingerprintBytes({ cookie }: Customer): Buffer {
  return Buffer.from(fingerprintOf(cookie.split("=")[1] ?? ""), "hex");
}

describe("the session", () => {
  test("its cookie goes only to the service of the page, and no other path reads it", async () => {
    const browser = new BrowserJar();
    Object.assign(app.provider.behaviour, {
      subject: "cookie",
      email: "cookie@example.com",
      emailVerified: true,
    });
    const returned = await browser.follow(`${app.url}/account/auth/sign-in`, callbackOf(app));
    const answer = await browser.get(returned);
    expect(answer.headers["set-cookie"]).toMatch(
      /vx_account=vxs_\w+; Path=\/vx\.account\.v1\.AccountService; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
    );
    const { customer, accountId } = await Customer.signUp(app, "paths@example.com");
    for (const path of ["/v1/me", "/v1/account", "/v1/ledger", "/vx.v1.MeService/GetMe"]) {
      const { status } = await sendHttp1(app.url, {
        method: path.startsWith("/v1") ? "GET" : "POST",
        path,
        headers: { cookie: customer.cookie, "x-vx-account": accountId, "content-type": "application/json" },
        body: path.startsWith("/v1") ? "" : "{}",
      });
      expect([path, status]).toEqual([path, 401]);
    }
    const [, token] = customer.cookie.split("=");
    const { status } = await sendHttp1(app.url, {
      method: "GET",
      path: "/v1/me",
      headers: { authorization: `Bearer ${token}` },
    });
    expect(status).toBe(401);
  });

  test("a call of another origin, or one that a form can send, is refused", async () => {
    const { customer, accountId } = await Customer.signUp(app, "origin@example.com");
    const refused: Record<string, string | undefined>[] = [
      { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
      { origin: "https://evil.example" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      { origin: "null" },
      { "connect-protocol-version": undefined },
    ];
    for (const headers of refused)
      expect([headers, await customer.fail("RenameAccount", { name: "x" }, accountId, headers)]).toEqual([
        headers,
        "401 invalid_session",
      ]);
    expect((await customer.do("GetAccount", {}, accountId)).name).toBe("Account of origin");
  });

  test("sessions are listed and ended, one by one", async () => {
    const one = await Customer.signIn(app, "many@example.com");
    const other = await Customer.signIn(app, "many@example.com");
    const { sessions } = await one.do("ListSessions");
    expect(sessions).toMatchObject([{ address: "127.0.0.1" }, { address: "127.0.0.1" }]);
    const others = (sessions as { id: string; current?: boolean }[]).filter(({ current }) => !current);
    expect(others).toHaveLength(1);
    const stranger = await Customer.signIn(app, "stranger@example.com");
    await stranger.do("EndSession", { sessionId: others[0]?.id ?? "" });
    await other.do("GetSession");
    await one.do("EndSession", { sessionId: others[0]?.id ?? "" });
    expect(await other.fail("GetSession")).toBe("401 invalid_session");
    await one.do("EndSession");
    expect(await one.fail("GetSession")).toBe("401 invalid_session");
  });

  test("two sessions end each other at once: neither call waits for the other", async () => {
    const one = await Customer.signIn(app, "pair@example.com");
    const pair = [one, await Customer.signIn(app, "pair@example.com")];
    const { sessions } = (await one.do("ListSessions")) as { sessions: { id: string; current?: boolean }[] };
    const ids = [...sessions].sort((a, b) => Number(a.current ?? false) - Number(b.current ?? false));
    const { calls } = await app.database.owner.begin(async (sql) => {
      // Both calls can prove their session now, and end the other one later.
      await sql`SELECT FROM vx.page_sessions WHERE id = ANY (${ids.map(({ id }) => id)}) FOR KEY SHARE`;
      const calls = pair.map((caller, i) => caller.fail("EndSession", { sessionId: ids[i]?.id ?? "" }));
      await untilWaiting(app, "end_page_session", 2);
      return { calls: Promise.all(calls) };
    });
    expect((await calls).sort()).toEqual(["200 ", "401 invalid_session"]);
  });

  test("a sign-in does not wait for a change that holds the session that it would end", async () => {
    const email = "twenty@example.com";
    const oldest = await Customer.signIn(app, email);
    for (let i = 1; i < 20; i++) await Customer.signIn(app, email);
    await app.database.owner.begin(async (sql) => {
      const held = await sql`
        SELECT FROM vx.page_sessions WHERE fingerprint = ${fingerprintBytes(oldest)} FOR KEY SHARE`;
      expect(held).toHaveLength(1);
      await Customer.signIn(app, email);
    });
    const last = await Customer.signIn(app, email);
    expect((await last.do("ListSessions")).sessions).toHaveLength(20);
    expect(await oldest.fail("GetSession")).toBe("401 invalid_session");
  });

  test("over TLS, a session that another host of the domain plants is refused: it cannot set the second cookie", async () => {
    const url = "https://api.example.com";
    const { provider, database } = app;
    const secure = await startTestApp({
      database,
      env: {
        VX_PUBLIC_URL: url,
        VX_CUSTOMER_OIDC_ISSUER: provider.issuer,
        VX_CUSTOMER_OIDC_CLIENT_ID: CLIENT.id,
        VX_CUSTOMER_OIDC_CLIENT_SECRET: CLIENT.secret,
      },
    });
    try {
      const { accountId } = await Customer.signUp(app, "planted@example.com");
      const { url: link } = await operatorOf(app).viewCustomerPage({ accountId, reason: "r" });
      const view = await sendHttp1(secure.url, {
        path: "/account/auth/view",
        headers: { origin: url, "sec-fetch-site": "same-origin", authorization: `Bearer ${tokenOf(link)}` },
      });
      const [, session = "", binding = ""] =
        /^(__Secure-vx_account=vxs_\w+); Path=\/vx\.account\.v1\.AccountService; .*; Secure, ?(__Host-vx_account=\w{64}); Path=\/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure$/.exec(
          view.headers["set-cookie"] ?? "",
        ) ?? [];
      const browser = new Customer({ ...secure, provider }, "");
      const answers = [];
      for (const cookie of [
        `${session}; ${binding}`,
        session,
        `${session}; __Host-vx_account=${"0".repeat(64)}`,
        `${session}; ${binding}; ${binding}`,
      ])
        answers.push(await browser.fail("GetSession", {}, undefined, { origin: url, cookie }));
      expect(answers).toEqual(["200 ", ...Array(3).fill("401 invalid_session")]);
    } finally {
      await secure.stop();
    }
  });

  test("a session that a page brings along is not used: each sign-in gets a new one", async () => {
    const fixed = await Customer.signIn(app, "attacker@example.com");
    const browser = new BrowserJar();
    Object.assign(app.provider.behaviour, { subject: "victim", email: "victim@example.com" });
    const returned = await browser.follow(`${app.url}/account/auth/sign-in`, callbackOf(app));
    const { pathname, search } = new URL(returned);
    const answer = await sendHttp1(app.url, {
      method: "GET",
      path: pathname + search,
      headers: { cookie: `${browser.header(app.url)}; ${fixed.cookie}` },
    });
    expect(answer.headers["set-cookie"]).not.toContain(fixed.cookie.split("=")[1]);
    expect((await fixed.do("GetSession")).email).toBe("attacker@example.com");
  });

  test("without an account in the header, with two or with a wrong one, nothing is read", async () => {
    const { customer, accountId } = await Customer.signUp(app, "header@example.com");
    for (const wrong of ["", "x", `${accountId},${accountId}`, "acct_../../x"])
      expect(await customer.fail("GetAccount", {}, wrong)).toBe("400 invalid_argument");
  });

  test("calls of one session are bounded", async () => {
    const { customer } = await Customer.signUp(app, "busy@example.com");
    const counts = new Map<number, number>();
    for (let round = 0; round < 13 && (counts.get(429) ?? 0) < 100; round++) {
      const answers = await Promise.all(Array.from({ length: 100 }, () => customer.call("GetSession")));
      for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
    }
    // The calls may fall into two minutes.
    expect(counts.get(200)).toBeLessThanOrEqual(1_200);
    expect(counts.get(429)).toBeGreaterThanOrEqual(100);
  });
});

describe("an operator who views the page", () => {
  test("sees it for an hour, changes nothing, and is in the log of the account", async () => {
    const { customer, accountId } = await Customer.signUp(app, "viewed@example.com");
    const { url } = await operatorOf(app).viewCustomerPage({ accountId, reason: "ticket 4711" });
    const open = (token: string, headers: Record<string, string> = {}) =>
      sendHttp1(app.url, {
        path: "/account/auth/view",
        headers: {
          origin: app.url,
          "sec-fetch-site": "same-origin",
          authorization: `Bearer ${token}`,
          ...headers,
        },
      });
    expect((await open(tokenOf(url), { origin: "https://evil.example" })).status).toBe(401);
    const answer = await open(tokenOf(url));
    expect(answer.headers["set-cookie"]).toMatch(
      /^vx_account=vxs_\w+; Path=\/vx\.account\.v1\.AccountService; Max-Age=3600; HttpOnly; SameSite=Strict$/,
    );
    const view = new Customer(app, "");
    view.cookie = /^[^;]+/.exec(answer.headers["set-cookie"] ?? "")?.[0] ?? "";
    expect(await view.do("GetSession")).toMatchObject({
      operator: "break-glass",
      accounts: [{ id: accountId, role: "viewer" }],
    });
    await view.do("ListEntries", {}, accountId);
    expect(await view.fail("CreateKey", { name: "x" }, accountId)).toBe("403 insufficient_role");
    const [refused] = (await operatorOf(app).listOperatorEvents({ accountId })).events;
    expect(refused).toMatchObject({ method: "CreateKey", outcome: "insufficient_role", actorId: "" });
    expect(refused?.actorName).not.toBe("");
    expect(await view.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
    expect(await view.fail("LeaveAccount", {}, accountId)).toBe("403 insufficient_role");
    const other = await Customer.signUp(app, "not-viewed@example.com");
    expect(await view.fail("GetAccount", {}, other.accountId)).toBe("404 not_found");
    expect((await open(tokenOf(url))).status).toBe(401);
    const { activity } = await customer.do("ListActivity", {}, accountId);
    expect((activity as { method: string }[]).slice(0, 2)).toMatchObject([
      { method: "CreateKey", outcome: "insufficient_role" },
      { method: "ViewCustomerPage", outcome: "ok" },
    ]);
    expect(JSON.stringify(activity)).not.toContain("ticket");
  });

  test.each<[string, (operator: Operator, operatorId: string) => Promise<unknown>]>([
    ["is revoked", (operator, operatorId) => operator.revokeOperator({ operatorId })],
    ["becomes a viewer", (operator, operatorId) => operator.setOperatorRole({ operatorId, role: "viewer" })],
  ])("an operator who %s sees nothing any more", async (what, end) => {
    const { accountId } = await Customer.signUp(app, `${what.replaceAll(" ", "-")}@example.com`);
    const { operator, secret } = await operatorOf(app).createOperator({
      name: `sam ${what}`,
      role: "support",
      reason: "r",
    });
    const { url } = await operatorOf(app, secret).viewCustomerPage({ accountId, reason: "r" });
    const answer = await sendHttp1(app.url, {
      path: "/account/auth/view",
      headers: { origin: app.url, "sec-fetch-site": "same-origin", authorization: `Bearer ${tokenOf(url)}` },
    });
    const view = new Customer(app, "");
    view.cookie = /^[^;]+/.exec(answer.headers["set-cookie"] ?? "")?.[0] ?? "";
    await view.do("GetSession");
    await end(operatorOf(app), operator?.id ?? "");
    expect(await view.fail("GetSession")).toBe("401 invalid_session");
  });
});
