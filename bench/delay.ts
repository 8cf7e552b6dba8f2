import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { Unavailable } from "./part.ts";

const SOURCE = join(import.meta.dirname, "clients", "delay");
/** git ignores it. */
const PROGRAM = join(import.meta.dirname, "..", ".clients", "bench-delay");

/** Starts a proxy to a Unix socket or address, written in Go, that adds a round trip. Returns its host and port. */
export async function startDelay(cleanup: AsyncDisposableStack, upstream: string, roundTripMs: number): Promise<string> {
  try {
    await promisify(execFile)("go", ["build", "-o", PROGRAM, "."], { cwd: SOURCE });
  } catch (error) {
    throw new Unavailable(`the delay proxy needs Go: ${(error as Error).message}`);
  }
  const child = spawn(PROGRAM, [upstream, String(roundTripMs)], { stdio: ["ignore", "pipe", "inherit"] });
  cleanup.defer(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return line.replace("listening on ", "");
}
