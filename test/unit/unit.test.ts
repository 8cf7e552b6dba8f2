import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { START, START_ENV } from "../support/start-script.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const UNIT = "deploy/systemd/vx.service";
/** The rating of systemd-analyze, from 0 (best) to 10. Node needs pages that are writable and executable, and the network. */
const MAX_EXPOSURE = 1.5;

const root = createTemporaryFolder("unit");
const systemd = spawnSync("systemd-analyze", ["--version"], { encoding: "utf8" });
const isMissing = systemd.status !== 0;
if (isMissing) console.warn("SKIPPED: the systemd unit is not checked: systemd-analyze is missing");

afterAll(() => root.remove());

describe.skipIf(isMissing)("the systemd unit", () => {
  test("is valid", () => expect(verify(readFileSync(UNIT, "utf8"))).toEqual({ status: 0, output: "" }));

  test("is refused if a name is misspelt", () => {
    const unit = readFileSync(UNIT, "utf8").replace("PrivateTmp=", "PrivateTemp=");
    expect(verify(unit).output).toContain("PrivateTemp");
  });

  test("restricts the server", () => {
    const { stdout } = spawnSync("systemd-analyze", ["security", "--offline=true", "--no-pager", UNIT], { encoding: "utf8" });
    const level = /exposure level for vx.service: (\d+\.\d)/.exec(stdout)?.[1];
    expect(Number(level)).toBeLessThanOrEqual(MAX_EXPOSURE);
  });
});

test("the unit starts the server with the arguments of npm start, and does not restart it on wrong settings or money", () => {
  const unit = readFileSync(UNIT, "utf8");
  expect(unit).toContain(` ${START.join(" ").replace("src/vx.js", "/opt/vx/lib/node_modules/vx-server/src/vx.js")}\n`);
  for (const [name, value] of Object.entries(START_ENV)) expect(unit).toContain(`Environment=${name}=${value}\n`);
  expect(unit).toContain("RestartPreventExitStatus=2 70\n");
});

test("the unit never gives up restarting the server", () => {
  const unit = readFileSync(UNIT, "utf8");
  expect(unit).toContain("Restart=on-failure\n");
  // Must be in [Unit]; elsewhere systemd ignores it and uses its default, five starts in ten seconds.
  expect(/^\[Unit\]\n([^[]*)/.exec(unit)?.[1]).toContain("StartLimitIntervalSec=0\n");
});

/** Verifies the unit in a root with the programs that it names. */
function verify(unit: string): { status: number | null; output: string } {
  const units = join(root.path, "etc/systemd/system");
  mkdirSync(units, { recursive: true });
  for (const program of ["bin/sh", "opt/vx/bin/node"]) {
    const path = join(root.path, program);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "#!/bin/sh\n");
    chmodSync(path, 0o755);
  }
  writeFileSync(join(units, "vx.service"), unit);
  const { status, stdout, stderr } = spawnSync(
    "systemd-analyze",
    ["verify", "--man=no", "--recursive-errors=no", `--root=${root.path}`, "vx.service"],
    { encoding: "utf8" },
  );
  return { status, output: stdout + stderr };
}
