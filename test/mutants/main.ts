// Applies each deliberate bug of this folder alone to a copy of the repository and runs the tests, those of its room first:
// npm run test:mutants [-- --only "text in the name"]. Prints the first test that fails for each, and exits with 1 if a bug survives.
// Write mutants without looking at the tests.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { type PlacedMutant, placeMutants, readMutants } from "./mutants.ts";

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
/** A mutant can make a test hang. */
const MAX_MS = 1_200_000;
const FAULTS = ["--project", "measured", "--project", "long", "--project", "isolated"];

const { placed, problems } = placeMutants(readMutants());
if (problems.length > 0) throw new Error(problems.join("\n"));
const mutants = placed.filter(({ name }) => name.includes(values.only));

const copy = createTemporaryFolder("mutants");
process.once("exit", copy.remove);
for (const path of trackedFiles()) {
  mkdirSync(dirname(join(copy.path, path)), { recursive: true });
  cpSync(path, join(copy.path, path));
}
symlinkSync(resolve("node_modules"), join(copy.path, "node_modules"));
// Tests of the repository read its files with git.
execFileSync("git", ["init", "--quiet"], { cwd: copy.path });
execFileSync("git", ["add", "--all"], { cwd: copy.path });
run("npm", "run", "generate:protos");

const survivors: string[] = [];
for (const mutant of mutants) {
  const startedAt = performance.now();
  const killer = killerOf(mutant);
  if (killer === undefined) survivors.push(mutant.name);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`${mutant.name} (${mutant.path}): ${killer ?? "SURVIVES"} (${seconds} s)`);
}
console.log(`\n${mutants.length - survivors.length} of ${mutants.length} mutants are noticed`);
for (const name of survivors) console.log(`  survives: ${name}`);
process.exitCode = survivors.length === 0 ? 0 : 1;

/** The test that notices the mutant; undefined if none does. */
function killerOf({ path, old, new: text }: PlacedMutant): string | undefined {
  const target = join(copy.path, path);
  writeFileSync(
    target,
    readFileSync(target, "utf8").replace(old, () => text),
  );
  try {
    const [, room = ""] = path.split("/");
    // Tests compare generated files with what they are generated from: a mutant is to be noticed by what it does.
    if (path.startsWith("console/")) run("npm", "run", "generate:console");
    else if (path.endsWith(".sql")) run("npm", "run", "generate:schema");
    else run("npm", "run", "generate:tables");
    if (path.startsWith("console/")) return failureOf(["--project", "browser"], { VX_TEST_EXTRA: "1" });
    const ofRoom = `test/${room}/`;
    const first = existsSync(ofRoom) ? failureOf(["--project", "shared", ofRoom]) : undefined;
    return first ?? failureOf(["--project", "shared"]) ?? failureOf(FAULTS);
  } finally {
    execFileSync("git", ["checkout", "--quiet", "--", "."], { cwd: copy.path });
  }
}

type Report = {
  testResults: {
    name: string;
    message: string;
    assertionResults: { status: string; fullName: string }[];
  }[];
};

/** The first failed test of a run; undefined if all pass. */
function failureOf(args: readonly string[], env: Record<string, string> = {}): string | undefined {
  const report = join(copy.path, "report.json");
  rmSync(report, { force: true });
  const { status, signal } = spawnSync("npx", ["vitest", "run", "--bail=1", ...args], {
    cwd: copy.path,
    env: { ...process.env, ...env, VX_TEST_REPORT: report },
    stdio: "ignore",
    timeout: MAX_MS,
    killSignal: "SIGKILL",
  });
  if (signal) return "the tests hang";
  if (status === 0) return undefined;
  if (!existsSync(report)) return "the tests do not start";
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report;
  const failed = testResults.flatMap(({ assertionResults }) => assertionResults).find((one) => one.status === "failed");
  return failed?.fullName ?? "a file of tests fails";
}

function run(program: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(program, args, { cwd: copy.path, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr}`);
}

function trackedFiles(): string[] {
  return execFileSync("git", ["ls-files", "-z"], { encoding: "utf8" })
    .split("\0")
    .filter((path) => path !== "" && existsSync(path));
}
