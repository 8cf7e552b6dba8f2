// OmniRoute: routes chat completions and charges them to a budget of the key, in SQLite, its default.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { startLoggedProgram } from "../program.ts";
import { freePort, temporaryFolder } from "../server.ts";
import { buildNative, installFromNpm } from "./npm.ts";
import type { StartPeer } from "./peer.ts";

const VERSION = "3.7.9";
/** Of the line that it recommends. On Node 24 its SQLite aborts the process. */
const NODE_VERSION = "22.23.3";
const PASSWORD = "password-of-the-bench";
const SECRET = "0123456789abcdef0123456789abcdef0123456789abcdef";
const BUDGET_USD = 1_000_000_000;
const USD_PER_MILLION_TOKENS = 1;

export const startOmniroute: StartPeer = async (cleanup, upstream) => {
  const node = await installFromNpm(`node-${process.platform}-${process.arch}`, NODE_VERSION);
  const folder = await installFromNpm("omniroute", VERSION, (modules) => addSqlite(modules, node));
  const cwd = temporaryFolder(cleanup);
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const program = {
    command: join(node, "bin", "node"),
    args: [join(folder, "app", "server-ws.mjs")],
    env: {
      NODE_ENV: "production",
      DATA_DIR: cwd,
      HOSTNAME: "127.0.0.1",
      PORT: port,
      OMNIROUTE_PORT: port,
      JWT_SECRET: SECRET,
      API_KEY_SECRET: SECRET,
      INITIAL_PASSWORD: PASSWORD,
      REQUIRE_API_KEY: "true",
      OMNIROUTE_ALLOW_PRIVATE_PROVIDER_URLS: "true",
      // Otherwise it sends the model server 100 calls a minute.
      RATE_LIMIT_AUTO_ENABLE: "false",
      // They call servers of its authors and of the providers.
      OMNIROUTE_DISABLE_BACKGROUND_SERVICES: "true",
    },
    cwd,
    readyUrl: `${url}/api/monitoring/health`,
  };
  let { pid } = await startLoggedProgram(cleanup, program);
  const operate = await logIn(url);
  const { node: provider } = await operate<{ node: { id: string } }>("POST", "provider-nodes", {
    name: "bench",
    prefix: "bench",
    type: "openai-compatible",
    apiType: "chat",
    baseUrl: `${upstream}/v1`,
  });
  await operate("POST", "providers", { provider: provider.id, name: "bench", apiKey: "none" });
  const price = { input: USD_PER_MILLION_TOKENS, output: USD_PER_MILLION_TOKENS };
  await operate("PATCH", "pricing", { [provider.id]: { m: price } });
  const { id, key } = await operate<{ id: string; key: string }>("POST", "keys", { name: "bench" });
  await operate("POST", "usage/budget", { apiKeyId: id, dailyLimitUsd: BUDGET_USD });
  return {
    version: `omniroute ${VERSION} (Node 22)`,
    url,
    get pid() {
      return pid;
    },
    model: "bench/m",
    secret: key,
    headers: "",
    meter: {
      name: "budget, SQLite",
      readSpent: async () => {
        const summary = await operate<{ totalCostMonth: number }>("GET", `usage/budget?apiKeyId=${id}`);
        return summary.totalCostMonth;
      },
      restart: async () => {
        ({ pid } = await startLoggedProgram(cleanup, program));
      },
    },
  };
};

/** Its install script also copies the native code of better-sqlite3 into the program. */
async function addSqlite(nodeModules: string, node: string): Promise<void> {
  await buildNative(nodeModules, "better-sqlite3", node);
  const path = join("better-sqlite3", "build", "Release", "better_sqlite3.node");
  cpSync(join(nodeModules, path), join(nodeModules, "omniroute", "app", "node_modules", path));
}

async function logIn(url: string) {
  const call = async (method: string, path: string, cookie: string, body?: object) => {
    const response = await fetch(`${url}/api/${path}`, {
      method,
      headers: { cookie, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`omniroute refused ${path}: ${await response.text()}`);
    return response;
  };
  const { headers } = await call("POST", "auth/login", "", { password: PASSWORD });
  const cookie = headers.getSetCookie()[0]?.split(";")[0] ?? "";
  return async <Data>(method: string, path: string, body?: object) =>
    (await (await call(method, path, cookie, body)).json()) as Data;
}
