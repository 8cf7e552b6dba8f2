import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { START } from "../test/support/start-script.ts";
import { createTemporaryFolder } from "../test/support/temporary-folder.ts";
import { type BenchDatabase, type Program, startProgram } from "./support.ts";

export type Server = {
  readonly url: string;
  readonly pid: number;
  /** Resolves to the next line of the output that matches. */
  next(pattern: RegExp): Promise<string>;
  /** Reads a metric. */
  metric(name: string): Promise<number>;
  stop(): Promise<void>;
};

const TOKEN = "operator-token-of-the-bench";

/** The server as it is installed, using the bench's database. */
export async function startServer(
  database: Pick<BenchDatabase, "url">,
  env: Record<string, string> = {},
  program: readonly string[] = START,
): Promise<Server> {
  const folder = createTemporaryFolder("bench-server");
  const adminPort = await freePort();
  const server: Program = startProgram(program, {
    DATABASE_URL: database.url,
    PORT: "0",
    VX_ADMIN_PORT: String(adminPort),
    VX_ADMIN_TOKEN: TOKEN,
    VX_DATA_DIR: folder.path,
    VX_LOG_LEVEL: "warn",
    ...env,
  });
  const url = await server.next(/^vx ready on (\S+)/);
  return {
    url,
    pid: server.pid,
    next: server.next,
    metric: async (name) => {
      const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      const value = new RegExp(`^${name.replace(/[{}]/g, "\\$&")} (\\S+)$`, "m").exec(
        await response.text(),
      )?.[1];
      if (value === undefined) throw new Error(`there is no metric ${name}`);
      return Number(value);
    },
    stop: async () => {
      await server.stop();
      folder.remove();
    },
  };
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  await once(server.close(), "close");
  return port;
}
