// Runs the generators again and fails on any difference from the committed files.

import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { brotliDecompressSync, gunzipSync } from "node:zlib";

/** Single files that generators write. */
const WRITTEN = [
  "docs/anthropic.md",
  "docs/clients.md",
  "docs/errors.md",
  "docs/openai.md",
  "docs/privacy.md",
  "docs/unsupported.md",
  "clients/go/reasons.go",
  "clients/go/version.go",
  "clients/python/src/vx/_inputs.py",
  "clients/python/src/vx/_reasons.py",
  "clients/python/src/vx/_sync.py",
  "clients/python/src/vx/_version.py",
];

const before = contents();
execFileSync("npm", ["run", "--silent", "generate:node"], { stdio: ["ignore", "ignore", "inherit"] });
const after = contents();
const stale = [...new Set([...before.keys(), ...after.keys()])].filter((file) => before.get(file) !== after.get(file));
if (stale.length > 0) {
  console.error(`stale before, fresh now; commit it:\n${stale.join("\n")}`);
  process.exit(1);
}

function contents(): Map<string, string> {
  const files = ["gen", "clients/typescript/src/gen"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
  );
  const paths = [...WRITTEN, ...files.map(({ parentPath, name }) => `${parentPath}/${name}`)];
  return new Map(paths.map((path) => [path, hash("sha256", contentOf(path), "hex")]));
}

/** Decompressed: how a text is compressed depends on the machine and on the version of Node. */
function contentOf(path: string): Buffer {
  const bytes = readFileSync(path);
  if (path.endsWith(".gz")) return gunzipSync(bytes);
  return path.endsWith(".br") ? brotliDecompressSync(bytes) : bytes;
}
