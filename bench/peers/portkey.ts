// @portkey-ai/gateway: routes chat completions, without accounts. It logs nothing per call.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Unavailable } from "../part.ts";
import { startProgram } from "../program.ts";
import { freePort } from "../server.ts";
import { PEERS, type Peer } from "./peer.ts";

export const PORTKEY = "@portkey-ai/gateway@1.15.2";

/** Starts the gateway in front of a model server. */
export async function startPortkey(cleanup: AsyncDisposableStack, upstream: string): Promise<Peer> {
  const script = await installPortkey();
  const port = await freePort();
  const program = startProgram([script, `--port=${port}`, "--headless"], { env: { NODE_ENV: "production" } });
  cleanup.defer(program.stop);
  await program.next(/Ready for connections/);
  return {
    version: PORTKEY,
    url: `http://127.0.0.1:${port}`,
    pid: program.pid,
    isMetered: false,
    model: "bench",
    secret: "none",
    headers: `x-portkey-provider: openai\r\nx-portkey-custom-host: ${upstream}/v1\r\n`,
  };
}

/** Returns the path of the program. Installed once and kept. */
async function installPortkey(): Promise<string> {
  const folder = join(PEERS, PORTKEY.replaceAll("/", "-"));
  const script = join(folder, "node_modules", "@portkey-ai", "gateway", "build", "start-server.js");
  if (existsSync(script)) return script;
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
  try {
    await promisify(execFile)("npm", ["install", ...options, "--prefix", folder, PORTKEY]);
  } catch (error) {
    throw new Unavailable(`${PORTKEY} cannot be installed: ${(error as Error).message}`);
  }
  return script;
}
