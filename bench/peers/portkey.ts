// @portkey-ai/gateway: routes chat completions, without accounts. It logs nothing per call.
import { join } from "node:path";
import { startProgram } from "../program.ts";
import { freePort } from "../server.ts";
import { installFromNpm } from "./npm.ts";
import type { Peer } from "./peer.ts";

const [NAME, VERSION] = ["@portkey-ai/gateway", "1.15.2"];
export const PORTKEY = `${NAME}@${VERSION}`;

/** Starts the gateway in front of a model server. */
export async function startPortkey(cleanup: AsyncDisposableStack, upstream: string): Promise<Peer> {
  const script = join(await installFromNpm(NAME, VERSION), "build", "start-server.js");
  const port = await freePort();
  const program = startProgram([script, `--port=${port}`, "--headless"], { env: { NODE_ENV: "production" } });
  cleanup.defer(program.stop);
  await program.next(/Ready for connections/);
  return {
    version: PORTKEY,
    url: `http://127.0.0.1:${port}`,
    pid: program.pid,
    model: "bench",
    secret: "none",
    headers: `x-portkey-provider: openai\r\nx-portkey-custom-host: ${upstream}/v1\r\n`,
  };
}
