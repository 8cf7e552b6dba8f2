// LiteLLM's proxy: routes chat completions. It charges calls only with a database, and has none here.
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Unavailable } from "../part.ts";
import { startLoggedProgram } from "../program.ts";
import { freePort, temporaryFolder } from "../server.ts";
import { PEERS, type StartPeer } from "./peer.ts";

const VERSION = "1.106.2";
const MASTER_KEY = "sk-0123456789abcdef0123456789abcdef0123456789abcdef";
const PACKAGE = `litellm[proxy]==${VERSION}`;

export const startLitellm: StartPeer = async (cleanup, upstream) => {
  const command = await installLitellm();
  const port = await freePort();
  const cwd = temporaryFolder(cleanup);
  const config = join(cwd, "config.json");
  const model = { model: "openai/m", api_base: `${upstream}/v1`, api_key: "none" };
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ model_list: [{ model_name: "bench", litellm_params: model }] }));
  const url = `http://127.0.0.1:${port}`;
  const { pid } = await startLoggedProgram(cleanup, {
    command,
    args: ["--config", config, "--host", "127.0.0.1", "--port", String(port)],
    env: {
      LITELLM_MASTER_KEY: MASTER_KEY,
      // The list of prices in the package, not the one on the network.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
    },
    cwd,
    readyUrl: `${url}/health/liveliness`,
  });
  return { version: `litellm ${VERSION}`, url, pid, model: "bench", secret: MASTER_KEY, headers: "" };
};

/** Returns the path of the program. Installed once and kept. */
async function installLitellm(): Promise<string> {
  const folder = join(PEERS, `litellm-${VERSION}`);
  const installed = join(folder, "installed");
  const run = promisify(execFile);
  try {
    if (!existsSync(installed)) {
      await run("python3", ["-m", "venv", "--clear", folder]);
      await run(join(folder, "bin", "pip"), ["install", "--quiet", PACKAGE]);
      writeFileSync(installed, PACKAGE);
    }
  } catch (error) {
    throw new Unavailable(`${PACKAGE} cannot be installed: ${(error as Error).message}`);
  }
  return join(folder, "bin", "litellm");
}
