import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { Agent, type Dispatcher, request } from "undici";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { GenerateRequestSchema, GenerateResponseSchema } from "../../gen/vx/v1/generate_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { createCertificate } from "../support/certificate.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createTestKey } from "../support/fixtures.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { unusedPort } from "../support/unused-port.ts";

const RESTARTS = process.env.VX_TEST_SHORT === "1" ? 4 : 10;
const TOKEN = "operator-token-of-the-tests";
/** Callers of each kind, for each proxy. */
const CALLERS = { REST: 4, streams: 3, gRPC: 4 };
const UNARY = { model: "vx-sandbox-small", max_tokens: 8, messages: [{ role: "user", content: "hello" }] };
/** Streams of half a second: many are open at each restart. */
const STREAM = {
  ...UNARY,
  stream: true,
  max_tokens: 100,
  messages: [{ role: "user", content: "[[tokens=10 delay_ms=50]] hello" }],
};

const folder = createTemporaryFolder("proxies");
const { cert, key } = createCertificate();
const files = { cert: join(folder.path, "vx.crt"), key: join(folder.path, "vx.key"), pem: join(folder.path, "vx.pem") };
writeFileSync(files.cert, cert);
writeFileSync(files.key, key);
writeFileSync(files.pem, cert + key);

type Backend = { readonly port: number; server: ServerProcess };
type Proxy = { readonly port: number; readonly child: ChildProcess };

let database: TestDatabase;
const backends: Backend[] = [];
let secret: string;
/** May be used only from 127.0.0.2. */
let boundSecret: string;

async function startBackend(port: number): Promise<ServerProcess> {
  const server = startServerProcess({
    PORT: String(port),
    DATABASE_URL: database.url,
    VX_DATA_DIR: join(folder.path, String(port)),
    VX_ADMIN_TOKEN: TOKEN,
    VX_LOG_LEVEL: "info",
    VX_TRUSTED_PROXIES: "127.0.0.1",
  });
  await server.line(/^vx ready on (\S+)$/m);
  return server;
}

/** A file of deploy/proxies with the addresses and files of this test; nothing else is changed. */
function adapted(name: string, port: number): string {
  let text = readFileSync(join("deploy/proxies", name), "utf8");
  for (const [i, backend] of backends.entries()) {
    text = text.replaceAll(`10.0.0.${i + 1}:8080`, `127.0.0.1:${backend.port}`);
  }
  return text
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replace("bind :443", `bind 127.0.0.1:${port}`)
    .replace("/etc/nginx/vx.crt", files.cert)
    .replace("/etc/nginx/vx.key", files.key)
    .replace("/etc/haproxy/vx.pem", files.pem);
}

const PROXIES = {
  nginx: {
    program: "/usr/sbin/nginx",
    start: (port: number) => {
      const root = join(folder.path, "nginx");
      mkdirSync(join(root, "logs"), { recursive: true });
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${root}/${kind};`);
      writeFileSync(join(root, "vx.conf"), adapted("nginx.conf", port));
      const isRoot = process.getuid?.() === 0;
      writeFileSync(
        join(root, "nginx.conf"),
        [
          `${isRoot ? "user root;" : ""} daemon off; worker_processes 2; pid ${root}/pid; error_log stderr warn;`,
          "events { worker_connections 1024; }",
          `http { access_log off; ${temporary.join(" ")} include ${root}/vx.conf; }`,
        ].join("\n"),
      );
      return ["-p", root, "-c", join(root, "nginx.conf")];
    },
  },
  haproxy: {
    program: "/usr/sbin/haproxy",
    start: (port: number) => {
      const path = join(folder.path, "haproxy.cfg");
      writeFileSync(path, adapted("haproxy.cfg", port));
      return ["-db", "-f", path];
    },
  },
} as const;
const NAMES = Object.keys(PROXIES) as (keyof typeof PROXIES)[];
const missing = NAMES.filter((name) => !existsSync(PROXIES[name].program));
if (missing.length > 0) console.warn(`SKIPPED: rolling restarts behind ${missing.join(", ")}: not installed`);

let count = 0;
const dispatcher = new Agent({ connect: { ca: cert } });

type Counts = Record<string, number>;
type Traffic = { readonly done: Counts; readonly failures: string[] };

/** Calls until `signal` is aborted. No failed call is repeated. */
async function keepCalling(url: string, name: string, traffic: Traffic, signal: AbortSignal): Promise<void> {
  const grpc = new Client(new URL(url).host, credentials.createSsl(Buffer.from(cert)));
  const calls: Readonly<Record<keyof typeof CALLERS, () => Promise<string | undefined>>> = {
    REST: async () => {
      const { status, text } = await post(url, UNARY, name);
      return status === 200 ? undefined : `${status} ${text}`;
    },
    streams: async () => {
      const { status, text } = await post(url, STREAM, name);
      return status === 200 && /finish_reason/.test(text) ? undefined : `${status} ${text.slice(-300)}`;
    },
    gRPC: async () => {
      await generateOver(grpc);
      return undefined;
    },
  };
  const repeat = async (kind: keyof typeof CALLERS) => {
    const label = `${name} ${kind}`;
    while (!signal.aborted) {
      const problem = await calls[kind]().catch((error: unknown) => String(error));
      traffic.done[label] = (traffic.done[label] ?? 0) + 1;
      if (problem !== undefined) traffic.failures.push(`${new Date().toISOString()} ${label}: ${problem}`);
    }
  };
  const kinds = Object.keys(CALLERS) as (keyof typeof CALLERS)[];
  await Promise.all(kinds.flatMap((kind) => Array.from({ length: CALLERS[kind] }, () => repeat(kind))));
  grpc.close();
}

/** As every client of gRPC, it repeats a call that the proxy refused before it read it, and no other. */
async function generateOver(client: Client): Promise<void> {
  const request = create(GenerateRequestSchema, {
    model: UNARY.model,
    maxTokens: 8,
    messages: [{ role: "user", content: "hello" }],
  });
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${secret}`);
  await new Promise<void>((resolve, reject) => {
    client.makeUnaryRequest(
      "/vx.v1.GenerateService/Generate",
      (message: typeof request) => Buffer.from(toBinary(GenerateRequestSchema, message)),
      (bytes) => fromBinary(GenerateResponseSchema, bytes),
      request,
      metadata,
      (error) => (error ? reject(error) : resolve()),
    );
  });
}

/** The servers log the name of the proxy with the id of the request. */
async function post(url: string, body: object, proxy: string): Promise<{ status: number; text: string }> {
  const { statusCode, body: reply } = await send(url, body, proxy);
  return { status: statusCode, text: await reply.text() };
}

function send(url: string, body: object, proxy: string): Promise<Dispatcher.ResponseData> {
  return request(`${url}/v1/generate`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-request-id": `${proxy}-${count++}`, ...bearer(secret) },
    body: JSON.stringify(body),
    dispatcher,
  });
}

describe.skipIf(missing.length > 0)("two servers behind nginx and HAProxy", () => {
  const proxies: Proxy[] = [];
  let outputs = "";
  let startOutputs = "";

  beforeAll(async () => {
    database = await createTestDatabase();
    for (let i = 0; i < 2; i++) {
      const port = await unusedPort();
      backends.push({ port, server: await startBackend(port) });
    }
    const adminUrl = /"admin":"([^"]+)"/.exec(backends[0]?.server.stderr() ?? "")?.[1] as string;
    const operator = createClient(
      AdminService,
      createGrpcTransport({
        baseUrl: adminUrl,
        interceptors: [
          (next) => (call) => {
            call.header.set("authorization", `Bearer ${TOKEN}`);
            return next(call);
          },
        ],
      }),
    );
    await operator.putPlan({ name: "proxies", rpm: 1_000_000, maxActiveKeys: 10, reason: "test" });
    const created = await createTestKey(operator, { plan: "proxies" });
    secret = created.secret;
    const bound = { name: "bound", allowedCidrs: ["127.0.0.2"], reason: "test" };
    boundSecret = (await operator.createKey({ accountId: created.accountId, ...bound })).secret;
    await operator.creditAccount({
      accountId: created.accountId,
      amountMicros: 1_000_000_000n,
      reason: "test",
      idempotencyKey: "proxies",
    });
    for (const name of NAMES) {
      const port = await unusedPort();
      const { program, start } = PROXIES[name];
      const child = spawn(program, start(port), { stdio: ["ignore", "ignore", "pipe"] });
      child.stderr?.on("data", (chunk: Buffer) => {
        outputs += chunk.toString();
      });
      proxies.push({ port, child });
      await vi.waitFor(async () => expect((await post(`https://127.0.0.1:${port}`, UNARY, name)).status).toBe(200));
    }
    startOutputs = outputs;
  }, 120_000);
  afterAll(async () => {
    for (const { child } of proxies) {
      const exited = child.exitCode === null ? once(child, "exit") : undefined;
      child.kill("SIGTERM");
      await exited;
    }
    for (const { server } of backends) await server.end("SIGTERM");
    await database?.drop();
    await dispatcher.close();
    folder.remove();
  });

  test("no call fails while they restart in turn", { timeout: 600_000 }, async () => {
    const stop = new AbortController();
    const traffic: Traffic = { done: {}, failures: [] };
    const running = proxies.map(({ port }, i) =>
      keepCalling(`https://127.0.0.1:${port}`, NAMES[i] as string, traffic, stop.signal),
    );
    for (let restart = 0; restart < RESTARTS; restart++) {
      const backend = backends[restart % 2] as Backend;
      expect(await backend.server.end("SIGTERM")).toBe(0);
      backend.server = await startBackend(backend.port);
      // Both proxies use this server again before the other one stops.
      await vi.waitFor(() => expect(usersOf(backend)).toEqual(NAMES), { timeout: 30_000 });
    }
    stop.abort();
    await Promise.all(running);
    console.log(traffic.done);
    expect(traffic.failures, outputs.slice(-3_000)).toEqual([]);
    for (const name of NAMES) {
      for (const kind of Object.keys(CALLERS)) expect(traffic.done[`${name} ${kind}`]).toBeGreaterThan(RESTARTS);
    }
  });

  test("the configurations cause no warning at the start", () => {
    expect(startOutputs).not.toMatch(/\[(WARNING|ALERT|warn|emerg)\]/);
  });

  test("a key works from its addresses only, whatever headers the caller sends", async () => {
    const outcomesFrom = async (localAddress: string, headers: Record<string, string> = {}) => {
      const agent = new Agent({ connect: { ca: cert }, localAddress });
      const sent = { ...bearer(boundSecret), ...headers };
      const outcomes: unknown[] = [];
      for (const { port } of proxies) {
        const baseUrl = `https://127.0.0.1:${port}`;
        const { statusCode, body } = await request(`${baseUrl}/v1/me`, { headers: sent, dispatcher: agent });
        await body.dump();
        const nodeOptions = { ca: cert, localAddress };
        const transport = createGrpcTransport({ baseUrl, nodeOptions, idleConnectionTimeoutMs: 1 });
        const call = createClient(MeService, transport).getMe({}, { headers: sent });
        outcomes.push(statusCode, await call.then(() => "ok").catch((error: ConnectError) => Code[error.code]));
      }
      await agent.close();
      return outcomes;
    };
    expect(await outcomesFrom("127.0.0.2")).toEqual([200, "ok", 200, "ok"]);
    const refused = [403, "PermissionDenied", 403, "PermissionDenied"];
    expect(await outcomesFrom("127.0.0.3")).toEqual(refused);
    expect(await outcomesFrom("127.0.0.3", { forwarded: "for=127.0.0.2" })).toEqual(refused);
    expect(await outcomesFrom("127.0.0.3", { "x-forwarded-for": "127.0.0.2" })).toEqual(refused);
    expect(await outcomesFrom("127.0.0.2", { forwarded: "for=127.0.0.3" })).toEqual([200, "ok", 200, "ok"]);
  });

  test("the pieces of a stream are passed on one by one", async () => {
    for (const { port } of proxies) {
      const messages = [{ role: "user", content: "[[tokens=10 delay_ms=300]] hello" }];
      const { body } = await send(`https://127.0.0.1:${port}`, { ...STREAM, messages }, "pieces");
      let pieces = 0;
      for await (const _ of body) pieces++;
      expect(pieces).toBeGreaterThan(2);
    }
  });
});

/** The proxies whose calls are in the log of the server. */
function usersOf({ server }: Backend): string[] {
  return NAMES.filter((name) => server.stderr().includes(`"request_id":"${name}-`));
}
