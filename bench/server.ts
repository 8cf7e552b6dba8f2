import { createTemporaryFolder } from "../test/support/temporary-folder.ts";
import { type BenchDatabase, type Program, startProgram } from "./support.ts";

export type Server = {
  readonly url: string;
  readonly pid: number;
  /** The value of a metric without labels. */
  metric(name: string): Promise<number>;
  stop(): Promise<void>;
};

const TOKEN = "operator-token-of-the-bench";

/** The server as it is installed, on the bench's database. */
export async function startServer(
  database: Pick<BenchDatabase, "url">,
  env: Record<string, string> = {},
  program: string[] = ["src/vx.js", "serve"],
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
    metric: async (name) => {
      const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      const value = new RegExp(`^${name} (\\S+)$`, "m").exec(await response.text())?.[1];
      if (value === undefined) throw new Error(`there is no metric ${name}`);
      return Number(value);
    },
    stop: async () => {
      await server.stop();
      folder.remove();
    },
  };
}

async function freePort(): Promise<number> {
  const { createServer } = await import("node:net");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
