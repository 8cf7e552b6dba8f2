// Fails for tracked files that nothing refers to, for binaries outside the folders that have them, and for large files without a
// reason, in the repository of the current folder.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, extname, matchesGlob } from "node:path";

const MAX_BYTES = 300_000;

/** Files above the limit, each with the reason why the repository has it. */
const LARGE: Readonly<Record<string, string>> = {
  "gen/openapi.json": "npm start sends it at /openapi.json, and generators of clients read it",
  "gen/reference/reference.js": "npm start sends it to the reference at /docs; its package would double an installation",
};

/** Folders with binaries, each with what they are. */
const BINARIES: Readonly<Record<string, string>> = {
  "docs/*.png": "pictures of the pages",
  "gen/console/*.{br,gz}": "the pages as npm start sends them",
};

/** Files that a program finds without their names, by the program. */
const FOUND: Readonly<Record<string, string>> = {
  ".*": "git, npm, editors and image builders",
  ".github/**": "GitHub",
  "biome.json": "Biome",
  "**/*.test.ts": "Vitest",
  "**/*.d.ts": "TypeScript",
  "bench/programs/*.ts": "the benchmarks, by the part of the name before -server.ts and -proxy.ts",
  "bench/**/*.go": "Go",
  "clients/**/*.go": "Go",
  "clients/python/tests/*.py": "pytest",
  "clients/python/src/vx/**/*_pb2.py{,i}": "Python",
  "clients/python/src/vx/py.typed": "type checkers",
  "clients/typescript/src/gen/**/*_pb.ts": "buf, which writes them all",
  "deploy/compose/grafana/**/*.yaml": "Grafana",
  "deploy/helm/vx/.helmignore": "Helm",
  "deploy/helm/vx/templates/**": "Helm",
  "docs/decisions/*.md": "readers: the folder is their list",
  "examples/{java,rust}/**": "Maven and Cargo",
  "gen/console/*.{br,gz}": "the server, by pages.json",
  "test/{agents,python}/**/*_client.py": "the tests, by the name of the client",
  "test/chart/values/*.yaml": "the tests of the chart",
  "test/grpc/**/*.go": "Go",
  "test/grpc/{java,rust}/**": "Maven and Cargo",
  "test/mutants/*.json": "npm run test:mutants",
  "test/sdks/node/*.ts": "the tests, by the name of the library",
};

const problems: string[] = [];
const files = execFileSync("git", ["ls-files", "-z"], { encoding: "utf8" }).split("\0").filter(Boolean);
const contents = files.filter((path) => existsSync(path)).map((path) => ({ path, bytes: readFileSync(path) }));
const texts = contents.filter(({ bytes }) => !bytes.includes(0));

/** Words of the files, each with one file that has it, or with undefined if several do. */
const fileOfWord = new Map<string, string | undefined>();
for (const { path, bytes } of texts)
  for (const [word] of bytes.toString().matchAll(/[\w@-][\w.@-]*[\w-]/g))
    fileOfWord.set(word, !fileOfWord.has(word) || fileOfWord.get(word) === path ? path : undefined);

for (const { path, bytes } of contents) {
  if (bytes.length > MAX_BYTES && LARGE[path] === undefined)
    problems.push(`${path}: ${bytes.length} bytes, more than ${MAX_BYTES}; make it smaller, or add it to LARGE with a reason`);
  if (bytes.includes(0) && !matchesAny(path, BINARIES))
    problems.push(`${path}: a binary; delete it, or add its folder to BINARIES`);
  if (!isReferred(path) && !matchesAny(path, FOUND)) problems.push(`${path}: no other file names it; delete it, or refer to it`);
}
for (const [table, patterns] of Object.entries({ LARGE, BINARIES, FOUND }))
  for (const pattern of Object.keys(patterns))
    if (!files.some((path) => matchesGlob(path, pattern)))
      problems.push(`.ci/check-files.ts: no file matches "${pattern}"; remove it from ${table}`);
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exitCode = 1;
}

/** SQL and Python name a function and a module without the extension of their file. */
function isReferred(path: string): boolean {
  const extension = extname(path);
  const names = [basename(path)];
  if ([".sql", ".py"].includes(extension)) names.push(basename(path, extension));
  return names.some((name) => fileOfWord.has(name) && fileOfWord.get(name) !== path);
}

function matchesAny(path: string, patterns: Readonly<Record<string, string>>): boolean {
  return Object.keys(patterns).some((pattern) => matchesGlob(path, pattern));
}
