import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { cleanEnv } from "../support/clean-env.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const SERVER = fileURLToPath(new URL("../../src/vx.js", import.meta.url));
const TOKEN = "operator-token-of-the-fuzzer";

export type FuzzServer = {
  readonly url: string;
  readonly secret: string;
  /** The exit code; undefined while it runs. */
  exitCode(): number | null;
  logText(): string;
  /** The findings of the audit. */
  auditFindings(): Promise<string[]>;
  stop(): Promise<void>;
};

/** A server process with a key without practical limits and with a sufficient balance. */
export async function startFuzzServer(): Promise<FuzzServer> {
  const folder = createTemporaryFolder("fuzz");
  const child = spawn(process.execPath, [SERVER, "serve"], {
    env: cleanEnv({
      PORT: "0",
      VX_ADMIN_PORT: "0",
      VX_ADMIN_TOKEN: TOKEN,
      VX_DATA_DIR: folder.path,
      VX_SEED_DEMO: "0",
      VX_AUTH_FAILURES_PER_MINUTE: "1000000000",
      VX_MAX_BODY_BYTES: "65536",
    }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  const keep = (line: string) => {
    // Successful calls are too many to keep.
    if (!line.includes('"level":30') || line.includes('"admin"')) lines.push(line);
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", keep);
  const logText = () => lines.join("\n");
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    folder.remove();
  };
  const found = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const match = pattern.exec(logText());
      if (match) return match[1] ?? "";
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}\n${logText()}`);
      await Promise.race([once(child.stdout, "data"), once(child.stderr, "data"), once(child, "exit")]);
    }
  };
  try {
    const url = await found(/vx ready on (\S+)/);
    const adminUrl = await found(/"admin":"([^"]+)"/);
    const operator = operatorOf(adminUrl);
    return {
      url,
      secret: await createKey(operator),
      exitCode: () => child.exitCode,
      logText,
      auditFindings: async () => (await operator.audit({})).findings.map(({ rule, detail }) => `${rule}: ${detail}`),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function operatorOf(adminUrl: string): Client<typeof AdminService> {
  const transport = createGrpcTransport({
    baseUrl: adminUrl,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${TOKEN}`);
        return next(request);
      },
    ],
  });
  return createClient(AdminService, transport);
}

/** The key of an account with a sufficient balance. */
async function createKey(operator: Client<typeof AdminService>): Promise<string> {
  await operator.putPlan({ name: "fuzz", rpm: 1_000_000, maxActiveKeys: 1_000_000 });
  const { account } = await operator.createAccount({ name: "fuzz", plan: "fuzz" });
  const accountId = account?.id ?? "";
  const amountMicros = 1_000_000_000_000_000n;
  await operator.creditAccount({ accountId, amountMicros, reason: "fuzz", idempotencyKey: "fuzz" });
  const scopes = ["generate", "read", "keys"];
  return (await operator.createKey({ accountId, name: "fuzz", plan: "fuzz", scopes })).secret;
}
