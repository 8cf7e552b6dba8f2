// Writes everything that a release has to dist/release: npm run release [-- --without-images]. Needs npm, Python, git and a
// work tree without changes. Images are written where a program that builds them works.
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { copyFileSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { RELEASE } from "../../src/database/schema/release.ts";
import { writeImages } from "./images.ts";
import { writeSbom } from "./sbom.ts";

const OUT = resolve("dist/release");
const NAMES = JSON.parse(readFileSync("clients/names.json", "utf8"));

const { values } = parseArgs({ options: { "without-images": { type: "boolean" } } });
if (output("git", "status", "--porcelain") !== "") fail("the work tree has changes; commit them first");

const revision = output("git", "rev-parse", "HEAD");
const time = output("git", "log", "-1", "--format=%cI");
// The times in the files of the Python packages.
process.env.SOURCE_DATE_EPOCH = output("git", "log", "-1", "--format=%ct");

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
writeServer();
run("npm", "pack", "./clients/typescript", "--silent", "--pack-destination", OUT);
writePython();
writeGo();
archive(`vx-chart-${RELEASE}.tgz`, "vx/", `${revision}:deploy/helm/vx`);
archive(`vx-source-${RELEASE}.tar.gz`, `vx-${RELEASE}/`, revision);
writeSbom(join(OUT, `${NAMES.server}-${RELEASE}.cdx.json`), NAMES.server);
if (!values["without-images"]) writeImages(OUT, { version: RELEASE, revision, created: time });
writeNotes();
writeProvenance();
const sums = files().map((file) => `${sha256(file)}  ${file}\n`);
writeFileSync(join(OUT, "SHA256SUMS"), sums.join(""));
console.log(`${relative(".", OUT)}\n${sums.join("")}`);

function writeServer(): void {
  const packed = output("npm", "run", "--silent", "build:package");
  renameSync(packed, join(OUT, basename(packed)));
}

/** A wheel and a source distribution. */
function writePython(): void {
  const venv = resolve("dist/venv");
  const python = join(venv, "bin/python");
  run("python3", "-m", "venv", venv);
  run(python, "-m", "pip", "install", "--quiet", "--requirement", "tools/release/requirements.txt");
  copyFileSync("LICENSE", "clients/python/LICENSE");
  run(python, "-m", "build", "--no-isolation", "--outdir", OUT, "clients/python");
}

/** The module as a folder that GOPROXY can name: https://go.dev/ref/mod#goproxy-protocol */
function writeGo(): void {
  const versions = join("go", NAMES.go, "@v");
  const file = (name: string) => join(versions, name);
  mkdirSync(join(OUT, versions), { recursive: true });
  writeFileSync(join(OUT, file("list")), `v${RELEASE}\n`);
  writeFileSync(join(OUT, file(`v${RELEASE}.info`)), JSON.stringify({ Version: `v${RELEASE}`, Time: time }));
  copyFileSync("clients/go/go.mod", join(OUT, file(`v${RELEASE}.mod`)));
  archive(file(`v${RELEASE}.zip`), `${NAMES.go}@v${RELEASE}/`, "--add-file=LICENSE", `${revision}:clients/go`);
}

function archive(file: string, prefix: string, ...args: string[]): void {
  run("git", "archive", `--prefix=${prefix}`, `--output=${join(OUT, file)}`, ...args);
}

/** The section of the changelog, and how to check the files. */
function writeNotes(): void {
  const sections = readFileSync("CHANGELOG.md", "utf8").split(/^(?=## )/m);
  const section = sections.find((text) => text.startsWith(`## ${RELEASE} (`));
  if (section === undefined) fail(`CHANGELOG.md has no section of ${RELEASE}`);
  const check =
    "Check the files with `sha256sum --check SHA256SUMS`. `provenance.json` names the commit that they were built from.";
  writeFileSync(join(OUT, "NOTES.md"), `${section.replace(/^## .*\n+/, "").trim()}\n\n${check}\n`);
}

/** A statement of in-toto with the predicate of SLSA 1.0. The workflow signs the checksums, which contain its own. */
function writeProvenance(): void {
  const subject = files().map((name) => ({ name, digest: { sha256: sha256(name) } }));
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY, GITHUB_RUN_ID } = process.env;
  const isWorkflow = GITHUB_RUN_ID !== undefined;
  const statement = {
    _type: "https://in-toto.io/Statement/v1",
    subject,
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: `${NAMES.repository}/blob/main/tools/release/main.ts`,
        externalParameters: { version: RELEASE },
        internalParameters: { node: process.version, npm: output("npm", "--version") },
        resolvedDependencies: [
          { uri: `git+${NAMES.repository}.git`, digest: { gitCommit: revision } },
          {
            name: "package-lock.json",
            digest: { sha256: hash("sha256", readFileSync("package-lock.json")) },
          },
        ],
      },
      runDetails: {
        builder: { id: isWorkflow ? `${NAMES.repository}/blob/main/.github/workflows/release.yml` : "local" },
        metadata: isWorkflow ? { invocationId: `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}/actions/runs/${GITHUB_RUN_ID}` } : {},
      },
    },
  };
  writeFileSync(join(OUT, "provenance.json"), `${JSON.stringify(statement, undefined, 2)}\n`);
}

/** Relative to the folder, in a fixed order. */
function files(): string[] {
  const found = globSync("**/*", { cwd: OUT, withFileTypes: true }).filter((entry) => entry.isFile());
  return found.map(({ parentPath, name }) => relative(OUT, join(parentPath, name))).sort();
}

function sha256(file: string): string {
  return hash("sha256", readFileSync(join(OUT, file)));
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ["ignore", "ignore", "inherit"] });
}

function output(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: "utf8" }).trim();
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
