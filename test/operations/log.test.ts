import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { trimLogs } from "../../src/embedded/start-log.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

test("a stderr that nobody reads costs a bounded amount of memory", async () => {
  const script = `
    import { createLog } from ${JSON.stringify(new URL("../../src/log.ts", import.meta.url).href)};
    const log = createLog("info");
    const text = "x".repeat(1_000);
    for (let round = 0; round < 100; round++) {
      for (let i = 0; i < 2_000; i++) log.info({ text }, "call");
      await new Promise((resolve) => setImmediate(resolve));
    }
    process.stdout.write(String(Math.round(process.memoryUsage().rss / 2 ** 20)), () => process.exit());`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [mib] = await once(child.stdout, "data");
  child.kill("SIGKILL");
  // 200 MB were logged.
  expect(Number(mib)).toBeGreaterThan(10);
  expect(Number(mib)).toBeLessThan(180);
});

test("the logs of the embedded database are emptied beyond their bound, and no link is followed", async () => {
  const folder = createTemporaryFolder("logs");
  const log = join(folder.path, "log");
  mkdirSync(log);
  const large = Buffer.alloc(17 * 2 ** 20, "x");
  writeFileSync(join(log, "postgresql-Mon.log"), large);
  writeFileSync(join(log, "postgresql-Tue.log"), "small");
  writeFileSync(join(folder.path, "other"), large);
  symlinkSync(join(folder.path, "other"), join(log, "postgresql-Wed.log"));
  await trimLogs(log);
  expect(readdirSync(log)).toHaveLength(3);
  expect(statSync(join(log, "postgresql-Mon.log")).size).toBe(0);
  expect(statSync(join(log, "postgresql-Tue.log")).size).toBe(5);
  expect(statSync(join(folder.path, "other")).size).toBe(large.length);
  folder.remove();
});
