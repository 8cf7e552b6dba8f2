import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { operatorOf, type TestKey } from "../support/fixtures.ts";
import { CLIENTS } from "../support/installed.ts";
import { createPaidKey } from "../support/openai.ts";
import { OtlpReceiver } from "../support/otlp-receiver.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { problemOf } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** The first build compiles the libraries of the collector. */
const TIMEOUT_MS = 600_000;
const FOLDER = join(CLIENTS, "collector");

function buildCollector(): string | undefined {
  mkdirSync(FOLDER, { recursive: true });
  cpSync("test/collector/go", FOLDER, { recursive: true });
  return problemOf("go", "version") ?? problemOf("env", "-C", FOLDER, "go", "build", "-o", "collector", ".");
}

const problem = buildCollector();
if (problem !== undefined) console.error(`SKIPPED: no OpenTelemetry collector was tested. ${problem}`);

/** Gets OTLP as protobuf from the server, checks it, and sends it on as JSON. */
async function startCollector(port: number, to: string): Promise<ChildProcess> {
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: { otlp_http: { endpoint: to, encoding: "json", compression: "none" } },
    service: {
      telemetry: { metrics: { level: "none" } },
      pipelines: {
        traces: { receivers: ["otlp"], exporters: ["otlp_http"] },
        metrics: { receivers: ["otlp"], exporters: ["otlp_http"] },
      },
    },
  };
  const child = spawn(join(FOLDER, "collector"), [`--config=yaml:${JSON.stringify(config)}`], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  await vi.waitFor(() => expect(log).toContain("Everything is ready"));
  return child;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe.skipIf(problem !== undefined)("an OpenTelemetry collector", { timeout: TIMEOUT_MS }, () => {
  const receiver = new OtlpReceiver();
  const folder = createTemporaryFolder("collector");
  let collector: ChildProcess;
  let database: TestDatabase;
  let server: ServerProcess;
  let url: string;
  let key: TestKey;
  let port: number;

  beforeAll(async () => {
    database = await createTestDatabase();
    port = await freePort();
    collector = await startCollector(port, await receiver.start());
  });
  afterAll(async () => {
    collector.kill();
    await receiver.stop();
    await database.drop();
    folder.remove();
  });

  async function startServer(): Promise<void> {
    server = startServerProcess({
      DATABASE_URL: database.url,
      VX_ADMIN_TOKEN: OPERATOR_TOKEN,
      VX_DATA_DIR: folder.path,
      VX_SEED_DEMO: "0",
      VX_WORKERS: "2",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_SERVICE_NAME: "vx-tests",
    });
    url = await server.line(/^vx ready on (\S+)$/m);
    const adminUrl = server.adminUrl();
    key = await createPaidKey(operatorOf({ adminUrl } as never));
  }

  const generate = async (requestId: string) =>
    await fetch(`${url}/v1/generate`, {
      method: "POST",
      headers: { ...bearer(key.secret), "content-type": "application/json", "x-request-id": requestId },
      body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: "Hello" }], max_tokens: 20 }),
    });

  test("accepts the configurations of the Compose file and of docs/observability.md", () => {
    const document = readFileSync("docs/observability.md", "utf8");
    const example = /\n\n(( {4}.*\n)+)\n`npm run test:extra -- collector`/.exec(document)?.[1] ?? "";
    expect(example).toContain("exporters: { debug: ");
    for (const config of ["file:deploy/compose/otel-collector.yaml", `yaml:${example}`])
      expect(problemOf(join(FOLDER, "collector"), "validate", `--config=${config}`)).toBeUndefined();
    const unknown = example.replaceAll("debug", "debugger");
    expect(problemOf(join(FOLDER, "collector"), "validate", `--config=yaml:${unknown}`)).toContain("debugger");
  });

  test("gets the traces and metrics of all workers, including those that are not yet sent when the server stops", async () => {
    await startServer();
    const ids = Array.from({ length: 40 }, (_, i) => `call-${i}`);
    for (const id of ids) expect((await generate(id)).status).toBe(200);
    expect(await server.end("SIGTERM")).toBe(0);
    const calls = () => receiver.spans.filter(({ attributes }) => String(attributes["vx.request_id"]).startsWith("call-"));
    await vi.waitFor(() => expect(calls()).toHaveLength(ids.length));
    for (const call of calls()) {
      const children = receiver.spans.filter(({ parentSpanId }) => parentSpanId === call.spanId);
      expect(children.map(({ name }) => name).sort()).toEqual(["chat vx-sandbox-small", "gate", "hold", "settlement"]);
      expect(call.resource).toMatchObject({ "service.name": "vx-tests" });
    }
    await vi.waitFor(() => expect([...receiver.metrics.keys()]).toContain("gen_ai.client.inference.duration"));
  });

  test("may stop while calls run: they succeed, and the server stops", async () => {
    await startServer();
    expect((await generate("before")).status).toBe(200);
    collector.kill();
    await once(collector, "exit");
    for (let i = 0; i < 20; i++) expect((await generate(`without-${i}`)).status).toBe(200);
    expect(await server.end("SIGTERM")).toBe(0);
  });
});
