import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { expect, test } from "vitest";
import { trimLogs } from "../../src/database/embedded/postmaster.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const LOG = JSON.stringify(new URL("../../src/telemetry/log.ts", import.meta.url).href);

/** Runs a module with this stderr; `stdin` and `stdout` are for the test. */
function run(script: string, stderr: number) {
  return spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", stderr] });
}

test("a stalled pipe uses bounded memory and does not prevent the process from exiting", async () => {
  const folder = createTemporaryFolder("pipe");
  const path = join(folder.path, "fifo");
  execFileSync("mkfifo", [path]);
  const pipe = openSync(path, constants.O_RDWR);
  const child = run(
    `
    import { createLog, flushed } from ${LOG};
    const log = createLog("info");
    const text = "x".repeat(1_000);
    for (let round = 0; round < 100; round++) {
      for (let i = 0; i < 2_000; i++) log.info({ text }, "call");
      await new Promise((resolve) => setImmediate(resolve));
    }
    process.stdout.write(String(Math.round(process.memoryUsage().rss / 2 ** 20)));
    await flushed(log);
    process.exit(7);`,
    pipe,
  );
  const [[mib], [code]] = await Promise.all([once(child.stdout as Readable, "data"), once(child, "exit")]);
  closeSync(pipe);
  folder.remove();
  expect(code).toBe(7);
  // 200 MB were logged.
  expect(Number(mib)).toBeGreaterThan(10);
  expect(Number(mib)).toBeLessThan(180);
});

test("a full disk drops log lines, and logging resumes when there is space", async () => {
  const folder = createTemporaryFolder("full");
  const path = join(folder.path, "log");
  const script = `
    import { once } from "node:events";
    import { createLog, flushed } from ${LOG};
    const log = createLog("info");
    for (let i = 0; i < 100; i++) {
      log.info({ i, text: "x".repeat(200) }, "call");
      await flushed(log);
    }
    process.stdout.write("full");
    await once(process.stdin, "data");
    log.info("room again");
    await flushed(log);
    process.exit(0);`;
  // A file size limit simulates a full disk.
  const command = `ulimit -f 8; exec "$0" --input-type=module -e "$1" 2>>"$2"`;
  const child = spawn("sh", ["-c", command, process.execPath, script, path], { stdio: ["pipe", "pipe", "ignore"] });
  await once(child.stdout, "data");
  const before = readFileSync(path, "utf8");
  truncateSync(path);
  child.stdin.end("go\n");
  const [code] = await once(child, "exit");
  const after = readFileSync(path, "utf8").trim().split("\n");
  folder.remove();
  expect(before).toContain('"i":0');
  expect(before).not.toContain('"i":99');
  expect(after).toHaveLength(1);
  expect(after[0]).toContain('"msg":"room again"');
  expect(code).toBe(0);
});

test("logs of the embedded database are truncated above their limit, without following links", async () => {
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
