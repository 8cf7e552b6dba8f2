// The long form of the differential test: npm run differential [-- --seed N --minutes N].
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { seed: { type: "string" }, minutes: { type: "string", default: "5" } } });
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const minutes = Number(values.minutes);
if (!Number.isSafeInteger(seed) || !(minutes > 0 && minutes <= 600)) {
  console.error("--seed is a whole number, --minutes is at most 600");
  process.exit(2);
}
const { status } = spawnSync("vitest", ["run", "test/differential"], {
  stdio: "inherit",
  env: { ...process.env, VX_DIFFERENTIAL_SEED: String(seed), VX_DIFFERENTIAL_MINUTES: String(minutes) },
});
process.exitCode = status ?? 1;
