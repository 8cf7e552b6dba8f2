// Applies each deliberate bug of this folder alone to a copy of the repository and runs the tests: first the file that noticed it in an
// earlier run, then those of its room, then the others. npm run test:mutants [-- --only "text in the name"] [--quick: only the file of
// an earlier run]. Prints the first test that fails for each, and exits with 1 if a bug survives. Write mutants without looking at the
// tests.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { type PlacedMutant, placeMutants, readMutants } from "./mutants.ts";

const { values } = parseArgs({ options: { only: { type: "string", default: "" }, quick: { type: "boolean", default: false } } });
/** A mutant can make a test hang. */
const MAX_MS = 1_200_000;
/** The projects of `npm test` and of `npm run test:faults`. */
const USUAL = ["--project", "shared", "--project", "timers"];
const FAULTS = ["--project", "measured", "--project", "long", "--project", "isolated"];
/** One line for each mutant: its name, a tab, and the file of the tests that noticed it last. */
const NOTICED = join(import.meta.dirname, "noticed-by.tsv");

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

const noticedBy = new Map(readNoticed());
const survivors: string[] = [];
for (const mutant of mutants) {
  const startedAt = performance.now();
  const failure = failureWith(mutant);
  if (failure === undefined) survivors.push(mutant.name);
  else {
    noticedBy.set(mutant.name, failure.file);
    writeNoticed();
  }
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`${mutant.name} (${mutant.path}): ${failure?.test ?? "SURVIVES"} (${seconds} s)`);
}
console.log(`\n${mutants.length - survivors.length} of ${mutants.length} mutants are noticed`);
for (const name of survivors) console.log(`  survives: ${name}`);
process.exitCode = survivors.length === 0 ? 0 : 1;

/** The first test that fails with the mutant and passes without it; undefined if there is none. */
function failureWith(mutant: PlacedMutant): Failure | undefined {
  for (const args of stagesOf(mutant)) {
    apply(mutant);
    const failure = failureOf(args);
    restore();
    if (failure && (failure.file === noticedBy.get(mutant.name) || !failureOf([failure.file]))) return failure;
  }
  return undefined;
}

/** The arguments of the runs of Vitest, until one notices the mutant. */
function stagesOf({ name, path }: PlacedMutant): string[][] {
  const known = noticedBy.get(name);
  const first = known !== undefined && existsSync(known) ? [[known]] : [];
  if (values.quick) return first;
  if (path.startsWith("console/")) return [...first, ["test/browser/"]];
  const [, room] = path.split("/");
  const ofRoom = existsSync(`test/${room}/`) ? [[...USUAL, `test/${room}/`]] : [];
  return [...first, ...ofRoom, USUAL, FAULTS];
}

function apply({ path, old, new: text }: PlacedMutant): void {
  const target = join(copy.path, path);
  writeFileSync(
    target,
    readFileSync(target, "utf8").replace(old, () => text),
  );
  // Tests compare generated files with what they are generated from: a mutant is to be noticed by what it does.
  if (path.startsWith("console/")) run("npm", "run", "generate:console");
  else run("npm", "run", "generate:tables");
}

function restore(): void {
  execFileSync("git", ["checkout", "--quiet", "--", "."], { cwd: copy.path });
}

function readNoticed(): [string, string][] {
  if (!existsSync(NOTICED)) return [];
  const lines = readFileSync(NOTICED, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => line.split("\t") as [string, string]);
}

function writeNoticed(): void {
  const names = new Set(placed.map(({ name }) => name));
  const lines = [...noticedBy].filter(([name]) => names.has(name)).map((columns) => `${columns.join("\t")}\n`);
  writeFileSync(NOTICED, lines.sort().join(""));
}

type Failure = { readonly file: string; readonly test: string };
type Report = { testResults: { name: string; message: string; assertionResults: { status: string; fullName: string }[] }[] };

/** The first failed test of a run; undefined if all pass. */
function failureOf(args: readonly string[]): Failure | undefined {
  const report = join(copy.path, "report.json");
  rmSync(report, { force: true });
  const isExtra = args.some((arg) => arg.startsWith("test/browser/"));
  const { status, signal } = spawnSync("npx", ["vitest", "run", "--bail=1", ...args], {
    cwd: copy.path,
    env: { ...process.env, ...(isExtra ? { VX_TEST_EXTRA: "1" } : {}), VX_TEST_REPORT: report },
    stdio: "ignore",
    timeout: MAX_MS,
    killSignal: "SIGKILL",
  });
  if (status === 0) return undefined;
  if (signal || !existsSync(report))
    return { file: args.at(-1) ?? "", test: signal ? "the tests hang" : "the tests do not start" };
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report;
  // Files that Vitest stopped after the first failure are listed as failed, without a failed test.
  for (const { name, assertionResults } of testResults) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (failed) return { file: relative(copy.path, name), test: failed.fullName };
  }
  const broken = testResults.find(({ message }) => message !== "");
  return broken && { file: relative(copy.path, broken.name), test: broken.message.split("\n")[0] ?? "" };
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
