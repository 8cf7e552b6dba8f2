import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cleanEnv } from "../support/clean-env.ts";
import type { Arena } from "./arena.ts";
import type { Violation } from "./checker/facts.ts";
import type { RunServer } from "./server.ts";
import { OPERATOR_TOKEN } from "./settings.ts";

const VX = fileURLToPath(new URL("../../src/vx.js", import.meta.url));

/** A server writes the line of a call after its response. */
const LOGGED_WITHIN_MS = 1_000;

/** Runs `vx audit` as an operator would. A failure is reported with all output, and with the lines that the server logged for it. */
export async function runAudit(arena: Arena): Promise<Violation[]> {
  const server = arena.servers[0] as RunServer;
  const loggedBefore = server.logText().length;
  const child = spawn(process.execPath, [VX, "audit"], {
    env: cleanEnv({ VX_ADMIN_PORT: String(server.adminPort), VX_ADMIN_TOKEN: OPERATOR_TOKEN }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  const [code] = (await once(child, "exit")) as [number];
  if (code === 0) return [];
  await wait(LOGGED_WITHIN_MS);
  const logged = server.logText().slice(loggedBefore).split("\n");
  const lines = logged.filter((line) => line.includes('"rpc":"vx.admin.v1.ConsoleService/WatchAudit"'));
  return [{ rule: "vx audit is clean", text: [`exit ${code}: ${text}`, ...lines].join("\n") }];
}
