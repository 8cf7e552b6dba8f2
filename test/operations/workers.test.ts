import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { BrowserJar } from "../support/browser-jar.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { CLIENT, IdentityProvider } from "../support/identity-provider.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { getMe, ready, workersOf } from "./server-process.ts";

const TOKEN = "operator-token-of-the-tests";
const folder = createDataFolder("workers");
let provider: IdentityProvider;
let server: ServerProcess;
let secret: string;
let url: string;
let adminUrl: string;

beforeAll(async () => {
  provider = await IdentityProvider.start();
  server = startServerProcess({
    VX_DATA_DIR: folder.path,
    VX_WORKERS: "2",
    VX_ADMIN_TOKEN: TOKEN,
    VX_OIDC_ISSUER: provider.issuer,
    VX_OIDC_CLIENT_ID: CLIENT.id,
    VX_OIDC_CLIENT_SECRET: CLIENT.secret,
  });
  secret = await server.line(/(vx_live_\w+)/);
  url = await server.line(ready);
  adminUrl = /"admin":"([^"]+)"/.exec(server.stderr())?.[1] ?? "";
  provider.register(`${adminUrl}/auth/callback`);
});
afterAll(async () => {
  const exit = await server.end("SIGTERM");
  await provider.stop();
  folder.remove();
  expect(exit).toBe(0);
});

async function metrics(): Promise<string> {
  return await (await fetch(`${adminUrl}/metrics`, { headers: bearer(TOKEN) })).text();
}

async function countedCalls(): Promise<number> {
  const counter = /^vx_calls_total\{rpc="vx.v1.MeService\/GetMe",protocol="connect",code="ok"\} (\d+)$/m;
  return Number(counter.exec(await metrics())?.[1] ?? 0);
}

async function callOperator(method: string, request: object, headers: Record<string, string>) {
  const answer = await fetch(`${adminUrl}/vx.admin.v1.AdminService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", "connect-protocol-version": "1", ...headers },
    body: JSON.stringify(request),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

test("several workers share the port, and the metrics include all of them", async () => {
  expect(workersOf(server.child.pid as number)).toHaveLength(2);
  const before = await countedCalls();
  for (let i = 0; i < 20; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
  expect(await countedCalls()).toBe(before + 20);
});

test("operators sign in with a token or through the provider, until both are revoked", async () => {
  const ada = { name: "ada", role: "support", email: "ada@example.com", reason: "new" };
  const created = await callOperator("CreateOperator", ada, bearer(TOKEN));
  const { operator, secret: token } = created.body as { operator: { id: string }; secret: string };

  const browser = new BrowserJar();
  const back = await browser.follow(`${adminUrl}/auth/sign-in`, `${adminUrl}/auth/callback`);
  expect((await browser.get(back)).status).toBe(303);
  const cookie = browser.header(adminUrl);
  expect(cookie).toMatch(/^vx_session=vxs_\w+$/);
  const session = { cookie, origin: adminUrl, "sec-fetch-site": "same-origin" };
  for (const headers of [bearer(token), session]) {
    // A key that an operator creates is known to every worker.
    const { status, body } = await callOperator("ListAccounts", {}, headers);
    expect(status).toBe(200);
    const [account] = body.accounts as { id: string }[];
    const key = await callOperator("CreateKey", { accountId: account?.id, name: "ada" }, headers);
    for (let i = 0; i < 4; i++) expect((await getMe(url, String(key.body.secret))).status).toBe(200);
  }

  await callOperator("RevokeOperator", { operatorId: operator.id, reason: "left" }, bearer(TOKEN));
  for (const headers of [bearer(token), session]) expect((await callOperator("ListAccounts", {}, headers)).status).toBe(401);
});

test("the counters of a worker are kept after it exits", async () => {
  const before = await countedCalls();
  const [pid] = workersOf(server.child.pid as number);
  process.kill(pid as number, "SIGKILL");
  expect(await countedCalls()).toBe(before);
  await vi.waitFor(async () => expect(await getMe(url, secret)).toMatchObject({ status: 200 }));
  expect(await countedCalls()).toBe(before + 1);
  // Gauges of exited processes are removed.
  expect(await metrics()).toContain("vx_running_calls 0");
});

test("a connection that a worker had not accepted when it was killed does not stay open", async () => {
  const main = server.child.pid as number;
  await vi.waitFor(() => expect(workersOf(main)).toHaveLength(2));
  const [first, ...others] = workersOf(main);
  process.kill(first as number, "SIGSTOP");
  // The workers get them in turn.
  const connections = [first, ...others].map(() => connect(Number(new URL(url).port), "127.0.0.1"));
  const closed = connections.map(async (connection) => {
    connection.on("error", () => undefined).resume();
    await new Promise((resolve) => connection.once("close", resolve));
  });
  await Promise.all(connections.map((connection) => once(connection, "connect")));
  for (const connection of connections) connection.write("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await Promise.race(closed);
  process.kill(first as number, "SIGKILL");
  await Promise.all(closed);
}, 40_000);
