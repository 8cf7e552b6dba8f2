import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test, vi } from "vitest";
import { AccountService } from "../../gen/vx/account/v1/account_pb.js";
import { fingerprintOf } from "../../src/domain/credentials.ts";
import { developerMethods, pathOf, rpcMethods } from "../support/any-method.ts";
import { startTestApp } from "../support/app.ts";
import { BrowserJar } from "../support/browser-jar.ts";
import {
  Customer,
  type CustomerApp,
  callbackOf,
  memberPathOf,
  memberPolicies,
  tokenOf,
  untilWaiting,
  useCustomerApp,
} from "../support/customer.ts";
import { type Operator, operatorOf, useOperator } from "../support/fixtures.ts";
import { CLIENT } from "../support/identity-provider.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";

const app = useCustomerApp({ VX_SIGN_UP: "open" });
const operator = useOperator(app);

/** Opens a link of an operator to the page of an account. */
function openView(token: string, url = app.url, origin = url) {
  const headers = { origin, "sec-fetch-site": "same-origin", ...bearer(token) };
  return sendHttp1(url, { path: "/account/auth/view", headers });
}

/** Views the page of an account with the role of an operator. */
async function view(accountId: string, by: Operator = operator) {
  const { url } = await by.viewCustomerPage({ accountId, reason: "ticket 4711" });
  const { headers } = await openView(tokenOf(url));
  const [cookie] = headers["set-cookie"]?.split(";") ?? [];
  return { viewer: new Customer(app, "", cookie), setCookie: headers["set-cookie"], token: tokenOf(url) };
}

/** Another server with the database and the provider of the first one. */
async function otherServer(env: Record<string, string>): Promise<CustomerApp> {
  const { provider, database } = app;
  const client = { VX_CUSTOMER_OIDC_CLIENT_ID: CLIENT.id, VX_CUSTOMER_OIDC_CLIENT_SECRET: CLIENT.secret };
  const server = await startTestApp({ database, env: { VX_CUSTOMER_OIDC_ISSUER: provider.issuer, ...client, ...env } });
  return { ...server, provider };
}

describe("the session", () => {
  test("its cookie goes only to the service of the page, and no other path reads it", async () => {
    const fixed = await Customer.signIn(app);
    const browser = new BrowserJar();
    const { pathname, search } = new URL(await browser.follow(`${app.url}/account/auth/sign-in`, callbackOf(app)));
    // A session that a page brings along is not used.
    const headers = { cookie: `${browser.header(app.url)}; ${fixed.cookie}` };
    const answer = await sendHttp1(app.url, { method: "GET", path: pathname + search, headers });
    expect(answer.headers["set-cookie"]).toMatch(
      /vx_account=vxs_\w+; Path=\/vx\.account\.v1\.AccountService; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
    );
    expect(answer.headers["set-cookie"]).not.toContain(fixed.cookie);
    expect((await fixed.do("GetSession")).email).toBe(fixed.email);

    const { customer, accountId } = await Customer.signUp(app);
    const own = { cookie: customer.cookie, "x-vx-account": accountId, "content-type": "application/json" };
    for (const path of ["/v1/me", "/v1/account", "/v1/ledger", "/vx.v1.MeService/GetMe"]) {
      const request = path.startsWith("/v1") ? { method: "GET" } : { body: "{}" };
      expect([path, (await sendHttp1(app.url, { path, headers: own, ...request })).status]).toEqual([path, 401]);
    }
    const asKey = { method: "GET", path: "/v1/me", headers: bearer(customer.cookie.split("=")[1] ?? "") };
    expect((await sendHttp1(app.url, asKey)).status).toBe(401);
  });

  test("it calls the methods with a policy of members, only under the path of the service, where no key is read", async () => {
    const { customer, accountId } = await Customer.signUp(app);
    const statusAt = async (path: string) => (await customer.send(path, "{}", accountId)).status;
    for (const method of rpcMethods.filter(({ methodKind }) => methodKind === "unary"))
      expect([method.name, await statusAt(pathOf(method))]).toEqual([method.name, 401]);
    const others = developerMethods.filter((method) => !memberPolicies.has(method));
    expect(others.map(({ name }) => name)).toEqual(expect.arrayContaining(["Generate", "QuoteGenerate", "Embed", "GetMe"]));
    for (const method of others) expect([method.name, await statusAt(memberPathOf(method))]).toEqual([method.name, 404]);
    const { secret } = await customer.do("CreateKey", { name: "k", scopes: ["keys"] }, accountId);
    for (const cookie of [undefined, customer.cookie]) {
      const answer = await customer.fail("ListKeys", {}, accountId, { cookie, ...bearer(String(secret)) });
      expect(answer).toBe(cookie === undefined ? "401 invalid_session" : "200 ");
    }
  });

  test("sessions are listed and ended, one by one", async () => {
    const email = "many@example.com";
    const [one, other] = [await Customer.signInAtProvider(app, email), await Customer.signInAtProvider(app, email)];
    const { sessions } = await one.do("ListSessions");
    expect(sessions).toMatchObject([{ address: "127.0.0.1" }, { address: "127.0.0.1" }]);
    const others = (sessions as { id: string; current?: boolean }[]).filter(({ current }) => !current);
    expect(others).toHaveLength(1);
    const sessionId = others[0]?.id ?? "";
    await (await Customer.signIn(app)).do("EndSession", { sessionId });
    await other.do("GetSession");
    await one.do("EndSession", { sessionId });
    expect(await other.fail("GetSession")).toBe("401 invalid_session");
    await one.do("EndSession");
    expect(await one.fail("GetSession")).toBe("401 invalid_session");
  });

  test("two sessions end each other at once: neither call waits for the other", async () => {
    const one = await Customer.signIn(app);
    const pair = [one, await Customer.signIn(app, one.email)];
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
    const oldest = await Customer.signIn(app);
    const { email } = oldest;
    for (let i = 1; i < 20; i++) await Customer.signIn(app, email);
    const fingerprint = Buffer.from(fingerprintOf(oldest.cookie.split("=")[1] ?? ""), "hex");
    await app.database.owner.begin(async (sql) => {
      const held = await sql`SELECT FROM vx.page_sessions WHERE fingerprint = ${fingerprint} FOR KEY SHARE`;
      expect(held).toHaveLength(1);
      await Customer.signIn(app, email);
    });
    const last = await Customer.signIn(app, email);
    expect((await last.do("ListSessions")).sessions).toHaveLength(20);
    expect(await oldest.fail("GetSession")).toBe("401 invalid_session");
  });

  test("over TLS, a session that another host of the domain plants is refused: it cannot set the second cookie", async () => {
    const url = "https://api.example.com";
    const secure = await otherServer({ VX_PUBLIC_URL: url });
    try {
      const { accountId } = await Customer.signUp(app);
      const { url: link } = await operator.viewCustomerPage({ accountId, reason: "r" });
      const { headers } = await openView(tokenOf(link), secure.url, url);
      const [, session = "", binding = ""] =
        /^(__Secure-vx_account=vxs_\w+); Path=\/vx\.account\.v1\.AccountService; .*; Secure, ?(__Host-vx_account=\w{64}); Path=\/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure$/.exec(
          headers["set-cookie"] ?? "",
        ) ?? [];
      const browser = new Customer(secure);
      const answers = [];
      for (const others of [`; ${binding}`, "", `; __Host-vx_account=${"0".repeat(64)}`, `; ${binding}; ${binding}`])
        answers.push(await browser.fail("GetSession", {}, undefined, { origin: url, cookie: session + others }));
      expect(answers).toEqual(["200 ", ...Array(3).fill("401 invalid_session")]);
    } finally {
      await secure.stop();
    }
  });

  test("without an account in the header, with two or with a wrong one, nothing is read", async () => {
    const { customer, accountId } = await Customer.signUp(app);
    for (const wrong of ["", "x", `${accountId},${accountId}`, "acct_../../x"])
      expect(await customer.fail("GetAccount", {}, wrong)).toBe("400 invalid_argument");
  });

  test("makes 600 calls per minute", async () => {
    // The server takes its clock when it starts.
    vi.useFakeTimers({ toFake: ["Date"] });
    const limited = await otherServer({});
    const client = createClient(AccountService, createConnectTransport({ baseUrl: limited.url, httpVersion: "2" }));
    const [own, other] = [await Customer.signIn(app), await Customer.signIn(app)];
    const call = ({ cookie }: Customer) => client.getSession({}, { headers: { cookie, origin: limited.url } });
    try {
      for (let round = 0; round < 60; round++) await Promise.all(Array.from({ length: 10 }, () => call(own)));
      await expect(call(own)).rejects.toThrow(/resource_exhausted/);
      await call(other);
      vi.setSystemTime(Date.now() + 60_000);
      await call(own);
    } finally {
      vi.useRealTimers();
      await limited.stop();
    }
  });
});

describe("an operator who views the page", () => {
  test("sees it for an hour, changes nothing, and is in the log of the account", async () => {
    const { customer, accountId } = await Customer.signUp(app);
    const { url } = await operator.viewCustomerPage({ accountId, reason: "ticket 4711" });
    expect((await openView(tokenOf(url), app.url, "https://evil.example")).status).toBe(401);
    const { viewer, setCookie, token } = await view(accountId);
    expect(setCookie).toMatch(
      /^vx_account=vxs_\w+; Path=\/vx\.account\.v1\.AccountService; Max-Age=3600; HttpOnly; SameSite=Strict$/,
    );
    const accounts = [{ id: accountId, role: "viewer" }];
    expect(await viewer.do("GetSession")).toMatchObject({ operator: "break-glass", accounts });
    await viewer.do("ListEntries", {}, accountId);
    expect(await viewer.fail("CreateKey", { name: "x" }, accountId)).toBe("403 insufficient_role");
    const [refused] = (await operator.listOperatorEvents({ accountId })).events;
    expect(refused).toMatchObject({ method: "CreateKey", outcome: "insufficient_role", actorId: "" });
    expect(refused?.actorName).not.toBe("");
    expect(await viewer.fail("SignUp", { name: "x" })).toBe("403 sign_up_refused");
    expect(await viewer.fail("LeaveAccount", {}, accountId)).toBe("403 insufficient_role");
    const other = await Customer.signUp(app);
    expect(await viewer.fail("GetAccount", {}, other.accountId)).toBe("404 not_found");
    expect((await openView(token)).status).toBe(401);
    const { activity } = await customer.do("ListActivity", {}, accountId);
    expect((activity as { method: string }[]).slice(0, 2)).toMatchObject([
      { method: "CreateKey", outcome: "insufficient_role" },
      { method: "ViewCustomerPage", outcome: "ok" },
    ]);
    expect(JSON.stringify(activity)).not.toContain("ticket");
  });

  test.each([
    ["is revoked", (operatorId: string) => operator.revokeOperator({ operatorId })],
    ["becomes a viewer", (operatorId: string) => operator.setOperatorRole({ operatorId, role: "viewer" })],
  ])("and %s sees nothing any more", async (name, end) => {
    const { accountId } = await Customer.signUp(app);
    const { operator: sam, secret } = await operator.createOperator({ name, role: "support", reason: "r" });
    const { viewer } = await view(accountId, operatorOf(app, secret));
    await viewer.do("GetSession");
    await end(sam?.id ?? "");
    expect(await viewer.fail("GetSession")).toBe("401 invalid_session");
  });
});
