import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createTestKey, type Operator, operatorOf, type TestKey } from "../support/fixtures.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { type Program, prepareGo, prepareJava, prepareNode, prepareRust } from "./toolchains.ts";

/** The first build of a client compiles its libraries. */
const TIMEOUT_MS = 600_000;

type Library = {
  readonly name: string;
  readonly prepare: () => Program;
  /** The libraries of the program that the first argument selects. */
  readonly protocols: readonly string[];
};

const LIBRARIES: readonly Library[] = [
  { name: "node", prepare: prepareNode, protocols: ["grpc-js"] },
  { name: "go", prepare: prepareGo, protocols: ["grpc-go", "connect-grpc", "connect-grpc-web", "connect", "connect-json"] },
  { name: "java", prepare: prepareJava, protocols: ["grpc-java"] },
  { name: "rust", prepare: prepareRust, protocols: ["tonic"] },
];
/** The short form of CI tests only some of the folders. */
const selected = process.env.VX_GRPC_CLIENTS?.split(",");

let database: TestDatabase;
const folder = createTemporaryFolder("grpc");

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
  folder.remove();
});

type TestServer = { readonly process: ServerProcess; readonly address: URL; readonly operator: Operator };

async function startServer(protocol: string, port = "0"): Promise<TestServer> {
  const process = startServerProcess({
    DATABASE_URL: database.url,
    PORT: port,
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
    VX_DATA_DIR: join(folder.path, protocol),
    VX_SEED_DEMO: "0",
  });
  const address = new URL(await process.line(/^vx ready on (\S+)$/m));
  const adminUrl = process.adminUrl();
  return { process, address, operator: operatorOf({ adminUrl } as never) };
}

async function createAccount(operator: Operator): Promise<TestKey> {
  await operator.putPlan({ name: "tests", rpm: 1_000_000, maxActiveKeys: 10 });
  const key = await createTestKey(operator, { plan: "tests" });
  await operator.creditAccount({ accountId: key.accountId, amountMicros: 100_000_000n, reason: "test", idempotencyKey: "test" });
  return key;
}

/**
 * How a call ends that is made during a drain. An open connection serves calls for a moment longer. Some clients report
 * CANCELLED for a call on a connection that the server closes meanwhile.
 */
const DURING_DRAIN = /^(OK|CANCELLED|UNAVAILABLE)$/;

/** At least the two after which the client cancels, and far fewer than the whole reply has. */
function isAFew(pieces: number): boolean {
  return pieces >= 2 && pieces < 20;
}

/** What every library must receive. */
const RESULTS = {
  unary: { code: "OK", plan: "tests", requestId: "my-unary" },
  generate: { code: "OK", text: expect.stringMatching(/^This is a reply of the sandbox\./), output: 33 },
  stream: { code: "OK", pieces: 10, done: true, reason: "" },
  errors: {
    unknown: ["NOT_FOUND", "vx MODEL_NOT_FOUND"],
    invalid: ["INVALID_ARGUMENT", "vx INVALID_ARGUMENT", ["messages"]],
    noKey: ["UNAUTHENTICATED", "vx INVALID_API_KEY"],
  },
  streamError: { code: "UNAVAILABLE", pieces: 2, done: false, reason: "vx UPSTREAM_ERROR" },
  deadline: { code: "DEADLINE_EXCEEDED", somePieces: true },
  // A busy client gets further pieces before the cancellation takes effect.
  cancel: { code: "CANCELLED", pieces: expect.toSatisfy(isAFew), done: false, reason: "" },
  replay: { ids: 1, replayed: ["", "true"] },
  large: { sent: "OK", received: "OK", values: 512 * 2_600 },
  gzip: { code: "OK", text: expect.stringMatching(/^This is a reply of the sandbox\./), output: 33 },
  concurrent: { counts: { OK: 600 } },
  keepAlive: { code: "OK", pieces: 2, done: true, reason: "" },
  drain: { code: "OK", pieces: 31, during: expect.stringMatching(DURING_DRAIN) },
  reconnect: { code: "OK" },
};

for (const { name, prepare, protocols } of LIBRARIES) {
  const program = selected?.includes(name) === false ? undefined : prepare();
  if (program && "problem" in program)
    console.error(`SKIPPED: the gRPC client in test/grpc/${name} was not tested. ${program.problem}`);
  // At the same time, each with its own server: the clients mostly wait for slow replies, deadlines and pings.
  describe.skipIf(!program || "problem" in program).concurrent(name, () => {
    test.each(protocols)("%s calls the server", { timeout: TIMEOUT_MS }, async (protocol) => {
      const { command } = program as { command: readonly string[] };
      const draining = await startServer(protocol);
      const { address } = draining;
      const key = await createAccount(draining.operator);
      const client = new ClientProcess([...command, protocol, address.host, key.secret]);
      expect(await client.line()).toBe("streaming");
      await stopListening(draining);
      client.answer();
      expect(await client.line()).toBe("drained");
      expect(await draining.process.exited()).toBe(0);
      const { operator, process } = await startServer(protocol, address.port);
      client.answer();
      expect(JSON.parse(await client.line())).toEqual(RESULTS);
      await expectCharges(operator, key);
      expect(await process.end("SIGTERM")).toBe(0);
    });
  });
}

/** Tells the server to stop, and waits until it accepts no connections. The running stream continues. */
async function stopListening({ process, address }: TestServer): Promise<void> {
  process.child.kill("SIGTERM");
  await vi.waitFor(async () => {
    const socket = connect(Number(address.port), address.hostname);
    socket.on("connect", () => socket.destroy());
    const [error] = (await once(socket, "close").catch((thrown: Error) => [thrown])) as [unknown];
    expect(error).toBeInstanceOf(Error);
  });
}

/** The calls that ended early are charged for what was produced until then. */
async function expectCharges(operator: Operator, { accountId }: TestKey): Promise<void> {
  const { entries } = await operator.listLedgerEntries({ accountId, pageSize: 1_000 });
  const of = (requestId: string) => entries.find((entry) => entry.requestId === requestId);
  expect(of("my-cancellation")?.reason).toMatch(/the caller disconnected/);
  // A library that notices its deadline long before a busy server does has disconnected by then.
  expect(of("my-deadline")?.reason).toMatch(/the caller's deadline passed|the caller disconnected/);
  for (const entry of [of("my-cancellation"), of("my-deadline")]) {
    // At least the two pieces, and much less than the 400 tokens of the whole reply.
    expect(Number(entry?.outputTokens)).toBeGreaterThanOrEqual(8);
    expect(Number(entry?.outputTokens)).toBeLessThan(200);
  }
}

/** A client that prints one line for each step, and waits for a line before it continues. */
class ClientProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #errors = "";

  constructor([program = "", ...args]: readonly string[]) {
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stderr?.on("data", (bytes: Buffer) => {
      this.#errors += bytes.toString();
    });
    const input = this.#child.stdout as NodeJS.ReadableStream;
    this.#lines = createInterface({ input })[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the client ended: ${this.#errors}`);
    return value;
  }

  answer(): void {
    this.#child.stdin?.write("continue\n");
  }
}
