import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { BrowserJar } from "../support/browser-jar.ts";
import { createTestDatabase } from "../support/database.ts";
import { CLIENT, IdentityProvider } from "../support/identity-provider.ts";
import { closeIdleConnections, type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { CLOSE, getMe, isAlive, isDraining, ready, watch, workersOf } from "./server-process.ts";

const folder = createTemporaryFolder("workers");
const database = started(() => createTestDatabase());
let provider: IdentityProvider;
let server: ServerProcess;
let secret: string;
let url: string;
let adminUrl: string;

beforeAll(async () => {
  provider = await IdentityProvider.start();
  server = startServerProcess({
    DATABASE_URL: database.url,
    VX_DATA_DIR: folder.path,
    VX_SEED_DEMO: "1",
    VX_WORKERS: "2",
    VX_SHUTDOWN_DELAY: "3600",
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
    VX_OIDC_ISSUER: provider.issuer,
    VX_OIDC_CLIENT_ID: CLIENT.id,
    VX_OIDC_CLIENT_SECRET: CLIENT.secret,
  });
  secret = await server.line(/(vx_live_\w+)/);
  url = await server.line(ready);
  adminUrl = server.adminUrl();
  provider.register(`${adminUrl}/auth/callback`);
});
afterAll(async () => {
  server.child.kill("SIGKILL");
  await provider.stop();
  folder.remove();
});

async function metrics(): Promise<string> {
  return await (await fetch(`${adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) })).text();
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
  const created = await callOperator("CreateOperator", ada, bearer(OPERATOR_TOKEN));
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

  await callOperator("RevokeOperator", { operatorId: operator.id, reason: "left" }, bearer(OPERATOR_TOKEN));
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

test("after SIGTERM, each worker waits for the shutdown delay; a second signal does not shorten it, and SIGKILL ends all processes", async () => {
  const main = server.child.pid as number;
  await vi.waitFor(() => expect(workersOf(main)).toHaveLength(2));
  await vi.waitFor(async () => expect(await getMe(url, secret)).toMatchObject({ status: 200 }));
  const { told, ended } = await watch(url);
  closeIdleConnections();
  server.child.kill("SIGTERM");
  await isDraining({ url, adminUrl, secret });
  // Not only at the end of the delay.
  await vi.waitFor(() => expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]));
  // Such as the one that npm passes on.
  server.child.kill("SIGTERM");
  await vi.waitFor(() => expect(server.stderr()).toContain("already stopping"));
  expect((await fetch(`${url}/livez`, CLOSE)).status).toBe(200);
  const pids = workersOf(main);
  expect(await server.end("SIGKILL")).toBe("SIGKILL");
  await ended;
  // Workers exit when their parent process has exited.
  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]));
});
