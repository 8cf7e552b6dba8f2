import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { cleanEnv } from "../support/clean-env.ts";
import type { Arena } from "./arena.ts";
import type { Violation } from "./checker/facts.ts";
import { OPERATOR_TOKEN } from "./settings.ts";

const VX = fileURLToPath(new URL("../../src/vx.js", import.meta.url));

/** Runs `vx audit` as an operator would. */
export async function runAudit(arena: Arena): Promise<Violation[]> {
  const child = spawn(process.execPath, [VX, "audit"], {
    env: cleanEnv({
      VX_ADMIN_PORT: String(arena.servers[0]?.adminPort),
      VX_ADMIN_TOKEN: OPERATOR_TOKEN,
    }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  const [code] = (await once(child, "exit")) as [number];
  return code === 0 ? [] : [{ rule: "vx audit is clean", text: `exit ${code}: ${text.slice(0, 1_000)}` }];
}
