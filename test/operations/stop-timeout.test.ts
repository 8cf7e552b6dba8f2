import { execFile } from "node:child_process";
import { expect, test } from "vitest";

const module = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);

/** A server that never stops, with a clock that passes the time limit for a stop. */
const HANGING_SERVER = (cause: string) => `
  import { mock } from "node:test";
  import { StopRequest } from ${module("cli/server-process.ts")};
  import { InvariantViolation, reportViolation } from ${module("domain/invariant.ts")};
  import { createLog } from ${module("telemetry/log.ts")};
  setInterval(() => undefined, 1_000);
  mock.timers.enable({ apis: ["setTimeout"] });
  new StopRequest(createLog("silent"), 0, ["SIGTERM"]);
  ${cause};
  setImmediate(() => mock.timers.tick(1_000_000));`;

function exitCodeAfter(cause: string): Promise<number | string | undefined> {
  const args = ["--input-type=module", "--eval", HANGING_SERVER(cause)];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, () => resolve(child.exitCode ?? child.signalCode ?? undefined));
  });
}

test.each([
  ["a signal", `process.kill(process.pid, "SIGTERM")`, 1],
  ["an uncaught exception", `setImmediate(() => { throw new Error("planted") })`, 1],
  ["a violated invariant", `reportViolation(new InvariantViolation("planted", {}))`, 70],
])("a stop that hangs after %s ends with the exit code of its cause", async (_name, cause, exitCode) => {
  expect(await exitCodeAfter(cause)).toBe(exitCode);
});
