import { afterAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/app/settings/config.ts";
import { type LaunchedApp, launchTestApp, OPERATOR_TOKEN } from "../support/app.ts";
import { memberPath, tokenOf } from "../support/customer.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { createTestDatabase } from "../support/database.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { started } from "../support/started.ts";
import { startHere, useDataFolder } from "./server-process.ts";

useDataFolder();

type Headers = Record<string, string>;

/** The headers that a page of the server itself sends. */
const own = (url: string): Headers => ({ host: new URL(url).host, origin: url, "sec-fetch-site": "same-origin" });

async function signIn(url: string, headers: Headers = {}) {
  const sent = { ...own(url), ...headers };
  const answer = await sendHttp1(url, { path: "/account/auth/demo", headers: sent, body: "" });
  const cookie = String(answer.headers["set-cookie"] ?? "").split(";")[0] ?? "";
  return { status: answer.status, cookie };
}

async function call(url: string, cookie: string, method: string, request: object = {}, headers: Headers = {}) {
  const connect = { "content-type": "application/json", "connect-protocol-version": "1" };
  const answer = await sendHttp1(url, {
    path: memberPath(method),
    headers: { ...own(url), ...connect, cookie, ...headers },
    body: JSON.stringify(request),
  });
  return { status: answer.status, body: JSON.parse(answer.body.toString()) as Record<string, unknown> };
}

/** Whether the sign-in page offers the sign-in. */
async function offers(url: string, headers: Headers = {}): Promise<boolean> {
  const sent = { ...own(url), ...headers };
  const { body } = await sendHttp1(url, { method: "GET", path: "/account", headers: sent });
  return body.toString().includes('data-demo="owner"');
}

async function openDemo(app: LaunchedApp) {
  const { url } = await app.started;
  const { status, cookie } = await signIn(url);
  expect(status).toBe(200);
  const session = await call(url, cookie, "GetSession");
  const [account] = session.body.accounts as { id: string }[];
  const of = (method: string, request?: object) => call(url, cookie, method, request, { "x-vx-account": account?.id ?? "" });
  return { url, cookie, session, of };
}

describe("a server whose models are of the sandbox", () => {
  const folder = createDataFolder("demo");
  const upstreamOf = (upstream: object) => {
    const prices = { input_micros_per_million_tokens: 1, output_micros_per_million_tokens: 1 };
    return JSON.stringify({ models: [{ id: "m", context_window: 8_192, max_output_tokens: 4_096, ...prices, upstream }] });
  };
  const models = createModelsFile(upstreamOf({ kind: "sandbox" }));
  const app = started(() => launchTestApp({ VX_DATA_DIR: folder.path, VX_MODELS: models.path, VX_ADMIN_TOKEN: OPERATOR_TOKEN }));
  afterAll(async () => {
    await app.end();
    models.remove();
    folder.remove();
  });

  test("a caller of this machine signs in as the demo owner, whose payments are simulated", async () => {
    const { url, session, of } = await openDemo(app);
    const printed = app.printed.join("");
    expect(await offers(url)).toBe(true);
    expect(printed).toContain(`Open ${url}/account and sign in as the demo owner`);
    expect(session.body).toMatchObject({
      email: "owner@demo.example",
      simulatesPayments: true,
      accounts: [{ name: "demo", role: "owner" }],
    });
    const { body } = await of("CreateTopUp", { amountMicros: "25000000" });
    const topUp = body.topup as { id: string };
    expect(topUp).toMatchObject({ state: "pending", url: `/account#/payments?pay=${topUp.id}` });
    // A repetition credits nothing more.
    for (let i = 0; i < 2; i++) expect((await of("PaySimulatedTopUp", { id: topUp.id })).status).toBe(200);
    expect((await of("ListTopUps")).body).toMatchObject({ topups: [{ id: topUp.id, state: "paid" }] });
    expect((await of("GetAccount")).body).toMatchObject({ balanceMicros: "35000000" });
    expect((await of("PaySimulatedTopUp", { id: "top_x" })).status).toBe(404);
    expect((await of("CreatePlaygroundKey")).status).toBe(200);
    for (const method of ["PutAutoTopUp", "CreateBillingPage"]) expect((await of(method)).status).not.toBe(200);

    const secret = app.demoKey();
    const headers = { ...bearer(secret), "content-type": "application/json" };
    const create = { headers, method: "POST", body: JSON.stringify({ amount_micros: 25_000_000 }) };
    for (const [path, init] of [
      ["/v1/topups", create],
      ["/v1/topups", { headers }],
      ["/v1/topups/auto", { headers }],
    ] as const)
      expect((await fetch(url + path, init)).status).toBe(501);
  });

  test("an operator who views the page of the demo account sees no simulated payments", async () => {
    const { url, adminUrl } = await app.started;
    const { accounts } = await operatorOf({ adminUrl }).listAccounts({});
    const accountId = accounts[0]?.id ?? "";
    const link = await operatorOf({ adminUrl }).viewCustomerPage({ accountId, reason: "test" });
    const viewed = await sendHttp1(url, { path: "/account/auth/view", headers: { ...own(url), ...bearer(tokenOf(link.url)) } });
    const cookie = String(viewed.headers["set-cookie"]).split(";")[0] ?? "";
    const of = (method: string) => call(url, cookie, method, {}, { "x-vx-account": accountId });
    expect((await of("GetSession")).body).not.toHaveProperty("simulatesPayments");
    expect([(await of("GetAccount")).status, (await of("ListTopUps")).status]).toEqual([200, 501]);
  });

  test.each<[string, Headers]>([
    ["another host", { host: "vx.example" }],
    ["a host that begins like this machine", { host: "127.0.0.1.example.com" }],
    ["X-Forwarded-For", { "x-forwarded-for": "203.0.113.7" }],
    ["X-Forwarded-Proto", { "x-forwarded-proto": "https" }],
    ["Forwarded", { forwarded: "for=203.0.113.7" }],
    ["Via", { via: "1.1 proxy" }],
    ["X-Real-IP", { "x-real-ip": "203.0.113.7" }],
  ])("gives requests with %s neither the sign-in nor its sessions", async (_, headers) => {
    const { url, cookie } = await openDemo(app);
    const sent = headers.host === undefined ? headers : { ...headers, origin: `http://${headers.host}` };
    expect(await offers(url, sent)).toBe(false);
    expect((await signIn(url, sent)).status).toBe(404);
    expect((await call(url, cookie, "GetSession", {}, sent)).status).toBe(401);
  });

  test("refuses requests of pages of other origins", async () => {
    const { url } = await openDemo(app);
    expect((await signIn(url, { origin: "http://localhost:1" })).status).toBe(401);
    expect((await signIn(url, { "sec-fetch-site": "cross-site" })).status).toBe(401);
  });

  test("has no demo owner after a reload with a model that is not of the sandbox", async () => {
    const { url, cookie } = await openDemo(app);
    models.write(upstreamOf({ kind: "openai", base_url: "http://127.0.0.1:1/v1", model: "m" }));
    await (await app.started).reload();
    await hasNoOwner(url, cookie);
  });

  test("has none after a start in production; the settings that permit none are those of the table below", async () => {
    models.write(upstreamOf({ kind: "sandbox" }));
    await (await app.started).reload();
    const { cookie } = await openDemo(app);
    await app.end();
    const next = launchTestApp({ VX_DATA_DIR: folder.path, VX_MODELS: models.path, NODE_ENV: "production" });
    await hasNoOwner((await next.started).url, cookie);
    await next.end();
  });
});

async function hasNoOwner(url: string, cookie: string): Promise<void> {
  expect(await offers(url)).toBe(false);
  expect((await signIn(url)).status).toBe(404);
  expect((await call(url, cookie, "GetSession")).status).toBe(401);
}

test("with DATABASE_URL there is neither such a path nor an owner", async () => {
  const database = await createTestDatabase();
  const app = startHere({ DATABASE_URL: database.url, VX_SEED_DEMO: "1" });
  const { url } = await app.started;
  expect(await offers(url)).toBe(false);
  expect((await signIn(url)).status).toBe(404);
  expect(await database.owner`SELECT FROM vx.people`).toHaveLength(0);
  expect(app.printed.join("")).toMatch(/vx_live_/);
  expect(app.printed.join("")).not.toContain("demo owner");
  await app.end();
  await database.drop();
});

test.each<{ env: NodeJS.ProcessEnv; allowed: boolean }>([
  { env: {}, allowed: true },
  { env: { VX_HOST: "::1" }, allowed: true },
  { env: { VX_PUBLIC_URL: "http://localhost:9000" }, allowed: true },
  { env: { VX_HOST: "0.0.0.0" }, allowed: false },
  { env: { VX_HOST: "::" }, allowed: false },
  { env: { VX_HOST: "192.0.2.1" }, allowed: false },
  { env: { VX_PUBLIC_URL: "https://api.example.com" }, allowed: false },
  { env: { VX_TRUSTED_PROXIES: "127.0.0.1" }, allowed: false },
  { env: { NODE_ENV: "production" }, allowed: false },
  { env: { DATABASE_URL: "postgres://vx@127.0.0.1/vx" }, allowed: false },
  { env: { VX_CELLS: "/etc/vx/cells.yaml" }, allowed: false },
])("the settings $env allow a demo owner: $allowed", ({ env, allowed }) => {
  expect(readConfig(env).allowsDemoOwner).toBe(allowed);
});
