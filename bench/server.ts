import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createTemporaryFolder } from "../test/support/temporary-folder.ts";
import type { Checkout } from "./checkout.ts";
import { startProgram } from "./program.ts";

export type Server = {
  readonly url: string;
  readonly pid: number;
  readonly dataDir: string;
  /** The environment in which the vx command calls this server. */
  readonly operatorEnv: Readonly<Record<string, string>>;
  /** Resolves to the next line of the output that matches. */
  next(pattern: RegExp): Promise<string>;
  /** Calls a method of vx.admin.v1.AdminService. */
  operate<Response>(method: string, request: object): Promise<Response>;
  /** The text of /metrics. */
  readMetrics(): Promise<string>;
  stop(): Promise<void>;
};

type ServerOptions = {
  readonly env?: Record<string, string>;
  /** Modules that Node loads before the server. */
  readonly preload?: readonly string[];
  /** Default: a new data folder, and so a new database. */
  readonly dataDir?: string;
  /** Keeps the default log level, with a file for the log. Otherwise only warnings are logged. */
  readonly hasDefaultLog?: boolean;
};

/** A preload: holds and settlements cost nothing. */
export const FREE_BILLING = join(import.meta.dirname, "programs", "free-billing.ts");

const TOKEN = "operator-token-of-the-bench";

/** The server of the checkout as `npm start` starts it, with the embedded PostgreSQL. */
export async function startServer(
  { folder, start, env: startEnv }: Checkout,
  cleanup: AsyncDisposableStack,
  { env = {}, preload = [], dataDir = temporaryFolder(cleanup), hasDefaultLog = false }: ServerOptions = {},
): Promise<Server> {
  const adminPort = await freePort();
  const imports = preload.flatMap((module) => ["--import", module]);
  const server = startProgram([...imports, ...start], {
    cwd: folder,
    env: {
      ...startEnv,
      PORT: "0",
      VX_ADMIN_PORT: String(adminPort),
      VX_ADMIN_TOKEN: TOKEN,
      VX_DATA_DIR: dataDir,
      ...(hasDefaultLog ? {} : { VX_LOG_LEVEL: "warn" }),
      ...env,
    },
    ...(hasDefaultLog ? { logFile: join(temporaryFolder(cleanup), "log") } : {}),
  });
  cleanup.defer(server.stop);
  return {
    ...server,
    dataDir,
    operatorEnv: { VX_ADMIN_URL: `http://127.0.0.1:${adminPort}`, VX_ADMIN_TOKEN: TOKEN },
    url: await server.next(/^vx ready on (\S+)/),
    operate: async <Response>(method: string, request: object) => {
      const response = await fetch(`http://127.0.0.1:${adminPort}/vx.admin.v1.AdminService/${method}`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify(request),
      });
      if (!response.ok) throw new Error(`${method}: ${await response.text()}`);
      return (await response.json()) as Response;
    },
    readMetrics: async () => {
      const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      return await response.text();
    },
  };
}

export function temporaryFolder(cleanup: AsyncDisposableStack): string {
  const folder = createTemporaryFolder("bench");
  cleanup.defer(folder.remove);
  return folder.path;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  await once(server.close(), "close");
  return port;
}
