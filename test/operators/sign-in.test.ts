import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { beforeEach, describe, expect, test } from "vitest";
import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { readConfig } from "../../src/app/settings/config.ts";
import type { Role } from "../../src/domain/operator.ts";
import { OPERATOR_TOKEN, startTestApp } from "../support/app.ts";
import { BrowserJar } from "../support/browser-jar.ts";
import { createTestAccount, useOperator } from "../support/fixtures.ts";
import { CLIENT, IdentityProvider } from "../support/identity-provider.ts";
import { bearer } from "../support/protocols.ts";
import { type RawAnswer, sendHttp1, sendHttp2 } from "../support/raw.ts";
import { started } from "../support/started.ts";

const provider = started(() => IdentityProvider.start());
const app = started(async () => {
  const client = { VX_OIDC_CLIENT_ID: CLIENT.id, VX_OIDC_CLIENT_SECRET: CLIENT.secret };
  const own = await startTestApp({ env: { VX_OIDC_ISSUER: provider.issuer, ...client } });
  provider.register(`${own.adminUrl}/auth/callback`);
  return own;
});
const admin = useOperator(app);
let users = 0;

const callback = () => `${app.adminUrl}/auth/callback`;

beforeEach(() => provider.reset());

/** Creates an operator with an address, as which the provider signs the next user in. */
async function createOperator(role: Role = "viewer") {
  const n = ++users;
  const email = `user${n}@example.com`;
  const { operator } = await admin.createOperator({ name: `user ${n}`, role, email });
  Object.assign(provider.behaviour, { subject: `subject-${n}`, email: `User${n}@Example.com` });
  return { id: operator?.id ?? "", name: `user ${n}`, email, subject: `subject-${n}` };
}

/** Signs in as far as the provider's redirect back to vx. */
async function returnFromProvider(browser: BrowserJar): Promise<string> {
  return await browser.follow(`${app.adminUrl}/auth/sign-in`, callback());
}

async function signIn(): Promise<BrowserJar> {
  const browser = new BrowserJar();
  const answer = await browser.get(await returnFromProvider(browser));
  expect([answer.status, answer.headers.location]).toEqual([303, "/"]);
  return browser;
}

/** The headers of a call that a page of the console makes. */
function ownHeaders(browser: BrowserJar): Record<string, string> {
  return {
    "content-type": "application/json",
    "connect-protocol-version": "1",
    origin: app.adminUrl,
    "sec-fetch-site": "same-origin",
    cookie: browser.header(app.adminUrl),
  };
}

type Sent = Readonly<Record<string, string | string[]>>;

async function call(method: string, headers: Sent): Promise<number> {
  return (await sendHttp1(app.adminUrl, { path: `/vx.admin.v1.AdminService/${method}`, headers, body: "{}" })).status;
}

const listPlans = (headers: Sent) => call("ListPlans", headers);

async function sessionOf(headers: Sent) {
  const answer = await sendHttp1(app.adminUrl, { method: "GET", path: "/auth/session", headers });
  return { status: answer.status, ...JSON.parse(answer.body.toString()) };
}

/** What the server says of the session of the browser. */
const sessionIn = (browser: BrowserJar) => sessionOf({ cookie: browser.header(app.adminUrl) });

async function sessions(operatorId: string): Promise<number> {
  const rows = await app.database.owner`SELECT 1 FROM vx.operator_sessions WHERE operator_id = ${operatorId}`;
  return rows.length;
}

/** What the log of the server says of the last sign-in that failed. */
function failureInLog() {
  const lines = app.logText().trim().split("\n");
  return lines.map((line) => JSON.parse(line)).findLast(({ msg }) => msg === "sign-in failed");
}

describe("sign-in", () => {
  test("an operator signs in, makes calls and signs out", async () => {
    const { id, name, subject } = await createOperator("finance");
    const operator = { id, name, role: "finance" };
    const browser = new BrowserJar();
    const started = await browser.get(`${app.adminUrl}/auth/sign-in`);
    expect(started.headers["set-cookie"]).toMatch(/^vx_sign_in=vxs_\w+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/);
    expect(started.headers).toMatchObject({ "referrer-policy": "no-referrer", "cache-control": "no-store" });
    const returned = await browser.follow(started.headers.location ?? "", callback());
    const finished = await browser.get(returned);
    expect(finished.headers["set-cookie"]).toMatch(/vx_session=vxs_\w+; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/);
    expect(browser.header(app.adminUrl)).not.toContain("vx_sign_in");

    const session = await sessionIn(browser);
    const until = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(session).toMatchObject({ status: 200, operator, openid_connect: true, session_expires_at: until });
    expect(await listPlans(ownHeaders(browser))).toBe(200);
    expect((await admin.listOperators({})).operators).toContainEqual(expect.objectContaining({ id, identityBound: true }));

    const headers = ownHeaders(browser);
    const signedOut = await sendHttp1(app.adminUrl, { path: "/auth/sign-out", headers });
    expect([signedOut.status, signedOut.headers["set-cookie"]]).toEqual([
      200,
      "vx_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
    ]);
    expect(await listPlans(headers)).toBe(401);
    expect(await sessionOf({ cookie: headers.cookie ?? "" })).toMatchObject({ status: 200, operator: null });
    expect(await sessions(id)).toBe(0);

    const { events } = await admin.listOperatorEvents({ actorId: id });
    expect(events.map(({ method, target, outcome, details }) => [method, target, outcome, details])).toEqual([
      ["SignOut", id, "ok", {}],
      ["SignIn", id, "ok", { identity: "bound" }],
    ]);
    const secrets = [subject, new URL(returned).searchParams.get("code") ?? "", CLIENT.secret, headers.cookie as string];
    for (const secret of secrets) expect(app.logText()).not.toContain(secret);
  });

  test("after the first sign-in, only issuer and subject identify an operator", async () => {
    const { id, email } = await createOperator();
    await signIn();
    Object.assign(provider.behaviour, { email: "married@example.com", emailVerified: false });
    const browser = await signIn();
    expect((await sessionIn(browser)).operator.id).toBe(id);
    Object.assign(provider.behaviour, { subject: "someone-else", email, emailVerified: true });
    await expectFailure(403, "unknown");
  });

  test("a new role of the operator applies to the open session", async () => {
    const { id } = await createOperator("support");
    const browser = await signIn();
    // A request that lacks required fields was allowed.
    expect(await call("CreateAccount", ownHeaders(browser))).toBe(400);
    await admin.setOperatorRole({ operatorId: id, role: "viewer" });
    expect(await call("CreateAccount", ownHeaders(browser))).toBe(403);
    expect((await sessionIn(browser)).operator.role).toBe("viewer");
  });

  test("an operator is created anew after a revocation, with the same identity", async () => {
    const { id, email } = await createOperator();
    await signIn();
    await admin.revokeOperator({ operatorId: id });
    await expectFailure(403, "unknown");
    const { operator } = await admin.createOperator({ name: "again", role: "viewer", email });
    const browser = await signIn();
    expect((await sessionIn(browser)).operator.id).toBe(operator?.id);
  });

  test("two active operators cannot have one address; it must be ASCII, and a name not blank", async () => {
    const { email } = await createOperator();
    const other = { name: "other", role: "viewer", email: email.toUpperCase() };
    await expect(admin.createOperator(other)).rejects.toThrow(/email: is the address of another active operator/);
    await expect(admin.createOperator({ ...other, email: "user\u212A@example.com" })).rejects.toThrow(/ASCII/);
    await expect(admin.createOperator({ name: " \u00a0", role: "viewer" })).rejects.toThrow(/must not be blank/);
  });

  const edov = (claims: object) => ({ ...claims, xms_edov: "1" });
  test.each([
    { what: "an address of no operator", change: { email: "nobody@example.com" } },
    { what: "an address that is not verified", change: { emailVerified: false } },
    { what: "an address of which nothing is said", change: { emailVerified: undefined } },
    { what: "no address", change: { email: undefined } },
    {
      what: "what Microsoft's provider calls verified and the standard claim does not",
      change: { emailVerified: false, change: edov },
    },
  ])("$what is refused with a page", async ({ change }) => {
    const { id } = await createOperator();
    Object.assign(provider.behaviour, change);
    const answer = await expectFailure(403, "unknown");
    expect(answer.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(answer.body.toString()).toContain("vx operators create --email");
    expect(await sessions(id)).toBe(0);
  });

  test("the address is verified by the claim of Microsoft's provider, which has no email_verified", async () => {
    const { id } = await createOperator();
    Object.assign(provider.behaviour, { emailVerified: undefined, change: edov });
    const browser = await signIn();
    expect((await sessionIn(browser)).operator.id).toBe(id);
  });

  test("an operator has at most ten sessions; the oldest ends", async () => {
    const { id } = await createOperator();
    const [first, second] = [await signIn(), await signIn()];
    for (let n = 2; n < 11; n++) await signIn();
    expect(await sessions(id)).toBe(10);
    expect([await listPlans(ownHeaders(first)), await listPlans(ownHeaders(second))]).toEqual([401, 200]);
  });
});

/** Signs in; the sign-in must fail with this status, and the log must name the failure. */
async function expectFailure(
  status: number,
  failure: string,
  change: (returned: URL, browser: BrowserJar) => void = () => undefined,
): Promise<RawAnswer> {
  const browser = new BrowserJar();
  const returned = new URL(await returnFromProvider(browser));
  change(returned, browser);
  const answer = await browser.get(returned.href);
  expect([answer.status, failureInLog().reason]).toEqual([status, failure]);
  expect(browser.header(app.adminUrl)).not.toContain("vx_session");
  return answer;
}

describe("responses that do not belong to the sign-in of this browser", () => {
  test("another state, no cookie of a sign-in, and the cookie of another sign-in", async () => {
    await createOperator();
    await expectFailure(400, "outdated", ({ searchParams }) => searchParams.set("state", "other"));
    await expectFailure(400, "outdated", (_, browser) => browser.forget(app.adminUrl));
    const other = new BrowserJar();
    const returned = await returnFromProvider(other);
    const browser = new BrowserJar();
    await returnFromProvider(browser);
    provider.requests.length = 0;
    expect((await browser.get(returned)).status).toBe(400);
    expect(provider.requests).toEqual([]);
  });

  test("a code that was used", async () => {
    await createOperator();
    const browser = new BrowserJar();
    const returned = await returnFromProvider(browser);
    const cookie = browser.header(app.adminUrl);
    expect((await browser.get(returned)).status).toBe(303);
    const { pathname, search } = new URL(returned);
    const replay = await sendHttp1(app.adminUrl, { method: "GET", path: pathname + search, headers: { cookie } });
    expect([replay.status, failureInLog().detail]).toEqual([403, expect.stringContaining("invalid_grant")]);
  });

  test("an error of the provider", async () => {
    await createOperator();
    await expectFailure(403, "refused", ({ searchParams }) => {
      searchParams.delete("code");
      searchParams.set("error", "access_denied");
    });
  });

  test("a HEAD request does not use the code", async () => {
    await createOperator();
    const browser = new BrowserJar();
    const returned = await returnFromProvider(browser);
    expect((await browser.get(returned, "HEAD")).status).toBe(405);
    expect((await browser.get(returned)).status).toBe(303);
  });

  const seconds = () => Math.floor(Date.now() / 1_000);
  const claims: [what: string, changed: object][] = [
    ["another nonce", { nonce: "other" }],
    ["another audience", { aud: "other" }],
    ["another issuer", { iss: "https://x.example" }],
    ["an expiry in the past", { exp: seconds() - 600 }],
    ["a subject that no database stores", { sub: "a\0" }],
  ];
  test.each([
    ...claims.map(([what, changed]) => ({ what, change: { change: (own: object) => ({ ...own, ...changed }) } })),
    { what: "an unknown key", change: { forge: true } },
  ])("an ID token with $what", async ({ change }) => {
    await createOperator();
    Object.assign(provider.behaviour, change);
    await expectFailure(403, "refused");
  });

  test("clocks may differ by some seconds", async () => {
    await createOperator();
    provider.behaviour.change = (claims) => ({ ...claims, exp: seconds() - 20, iat: seconds() - 40 });
    await signIn();
  });

  test("a provider that fails or sends too much causes an error page, and tokens still work", async () => {
    for (const down of [
      { status: 500, bytes: 10, detail: "unexpected HTTP response status code" },
      { status: 200, bytes: 1_000_000, detail: "more than 262144 bytes" },
    ]) {
      await createOperator();
      const answer = await expectFailure(502, "unreachable", () => {
        provider.behaviour.down = down;
      });
      expect(answer.body.toString()).toContain("or sign in with the token of an operator.");
      expect(failureInLog().detail).toContain(down.detail);
      expect((await sessionOf(bearer(OPERATOR_TOKEN))).operator.role).toBe("admin");
      provider.reset();
    }
  });
});

test.each([
  { env: { VX_OIDC_ISSUER: "https://id.example" }, error: /set all of them, or none/ },
  { env: { VX_OIDC_ISSUER: "http://id.example" }, error: /VX_OIDC_ISSUER: must be the https URL/ },
  { env: { VX_OIDC_ISSUER: "https://id.example?x" }, error: /VX_OIDC_ISSUER: must be the https URL/ },
  { env: { VX_ADMIN_URL: "https://ops.example/console" }, error: /VX_ADMIN_URL: must be a URL with host/ },
  {
    env: { VX_METRICS_TOKEN: OPERATOR_TOKEN, VX_ADMIN_TOKEN: OPERATOR_TOKEN },
    error: /VX_METRICS_TOKEN: must not be the value of VX_ADMIN_TOKEN/,
  },
])("$env stops the start", ({ env, error }) => {
  expect(() => readConfig(env)).toThrow(error);
});

describe("a session", () => {
  test("is accepted only from pages of the listener, with the header of Connect", async () => {
    await createOperator("admin");
    const own = ownHeaders(await signIn());
    const { "sec-fetch-site": _site, origin: _origin, "connect-protocol-version": _version, ...bare } = own;
    const version = { "connect-protocol-version": "1" };
    const accepted = [own, { ...bare, ...version, origin: app.adminUrl }];
    const refused: Record<string, string | string[]>[] = [
      bare,
      { ...bare, ...version },
      { ...bare, origin: app.adminUrl, "sec-fetch-site": "same-origin" },
      { ...own, "sec-fetch-site": "cross-site" },
      { ...own, "sec-fetch-site": "same-site" },
      { ...own, "sec-fetch-site": "none" },
      { ...own, origin: "https://attacker.example" },
      { ...own, origin: "null" },
      { ...own, origin: [app.adminUrl, "https://attacker.example"] },
      { ...own, origin: app.url },
      { ...own, host: "other.example" },
      { ...own, cookie: `${own.cookie}; ${own.cookie}` },
      { ...own, cookie: `${own.cookie}x` },
      { ...own, ...bearer("vxo_wrong") },
    ];
    for (const headers of accepted) expect(await listPlans(headers), JSON.stringify(headers)).toBe(200);
    for (const headers of refused) expect(await listPlans(headers), JSON.stringify(headers)).toBe(401);
    expect(await listPlans({ ...bare, ...bearer(OPERATOR_TOKEN) })).toBe(200);

    const path = `/vx.admin.v1.AdminService/ListPlans?connect=v1&encoding=json&message={}`;
    expect((await sendHttp1(app.adminUrl, { method: "GET", path, headers: { cookie: own.cookie ?? "" } })).status).toBe(401);
    expect((await sendHttp1(app.adminUrl, { method: "GET", path: "/metrics", headers: own })).status).toBe(401);
    for (const headers of refused.slice(3, 10))
      expect((await sendHttp1(app.adminUrl, { path: "/auth/sign-out", headers })).status).toBe(401);
    expect(await listPlans(own)).toBe(200);
  });

  test("is accepted over HTTP/2", async () => {
    await createOperator();
    const headers = ownHeaders(await signIn());
    const path = "/vx.admin.v1.AdminService/ListPlans";
    const send = (changed: object) => sendHttp2(app.adminUrl, { path, headers: { ...headers, ...changed }, body: "{}" });
    expect((await send({})).status).toBe(200);
    expect((await send({ origin: "https://attacker.example" })).status).toBe(401);
  });

  /** Makes the session of an operator older. */
  async function age(operatorId: string, column: string, by: string): Promise<void> {
    const { owner } = app.database;
    const time = owner`clock_timestamp() - ${by}::interval`;
    await owner`UPDATE vx.operator_sessions SET ${owner(column)} = ${time} WHERE operator_id = ${operatorId}`;
  }

  test("ends with the revocation of its operator, at its time limit and when it is idle", async () => {
    const { id } = await createOperator("admin");
    const revoked = ownHeaders(await signIn());
    expect(await listPlans(revoked)).toBe(200);
    await admin.revokeOperator({ operatorId: id });
    expect(await listPlans(revoked)).toBe(401);
    expect(await sessions(id)).toBe(0);

    for (const [column, limit] of [
      ["created_at", "8 hours"],
      ["used_at", "1 hour"],
    ] as const) {
      const { id: operatorId } = await createOperator();
      const headers = ownHeaders(await signIn());
      await age(operatorId, column, `${limit} -10 minutes`);
      expect(await listPlans(headers), `before ${limit}`).toBe(200);
      await age(operatorId, column, limit);
      expect(await listPlans(headers), limit).toBe(401);
    }
  });

  test("is not kept alive by a stream, which ends with it", async () => {
    const { id } = await createOperator();
    const { cookie = "", origin = "" } = ownHeaders(await signIn());
    await createTestAccount(admin);
    const client = createClient(ConsoleService, createConnectTransport({ baseUrl: app.adminUrl, httpVersion: "1.1" }));
    /** Reads the stream of an audit, which begins, waits until the session is older, and goes on. */
    const readWhile = async (by: string) => {
      const stream = client.watchAudit({}, { headers: { cookie, origin } })[Symbol.asyncIterator]();
      await app.database.owner.begin(async (sql) => {
        await sql`LOCK TABLE vx.usage_quarters`;
        await stream.next();
        await age(id, "used_at", by);
      });
      while (!(await stream.next()).done);
    };
    // Uses are recorded once a minute.
    await readWhile("50 minutes");
    const isOld = app.database
      .owner`SELECT used_at < now() - interval '49 minutes' AS old FROM vx.operator_sessions WHERE operator_id = ${id}`;
    expect(await isOld).toEqual([{ old: true }]);
    await expect(readWhile("1 hour")).rejects.toThrow(/unauthenticated.*expired/);
  });

  test("is not stored: the database has its fingerprint", async () => {
    await createOperator();
    const browser = await signIn();
    const token = /vxs_\w+/.exec(browser.header(app.adminUrl))?.[0] ?? "";
    const rows = await app.database.owner`SELECT s::text FROM vx.operator_sessions s`;
    expect(JSON.stringify(rows)).not.toContain(token.slice(4));
    expect(await sessionOf(bearer(token))).toMatchObject({ status: 401 });
  });
});
