import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CACHE, protobufSuite, Unavailable } from "../tools.ts";

const VERSION = "33.2.0";
const FOLDER = "test/conformance/protobuf";

/** Runs protobuf's conformance suite against REST JSON. True if only known cases fail. */
export function runProtobufSuite(): boolean {
  const { runner, descriptors } = protobufSuite(VERSION);
  const options = ["--enforce_recommended", "--maximum_edition", "2023"];
  const { status, stdout, stderr } = spawnSync(
    runner,
    [...options, "--failure_list", `${FOLDER}/known-failing.txt`, testee(descriptors)],
    { encoding: "utf8", maxBuffer: 1 << 28 },
  );
  const output = stdout + stderr;
  const totals = /^CONFORMANCE SUITE .*$/m.exec(output)?.[0];
  if (totals === undefined) throw new Unavailable(`the runner does not work here: ${output.trim()}`);
  console.log(status === 0 ? totals : output);
  return status === 0;
}

/** The runner starts a program without arguments. */
function testee(descriptors: string): string {
  const file = join(CACHE, "protobuf-testee.sh");
  const command = [process.execPath, resolve(FOLDER, "testee.ts"), descriptors];
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  writeFileSync(file, `#!/bin/sh\nexec ${quoted}\n`, { mode: 0o755 });
  return file;
}
