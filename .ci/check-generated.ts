// Generates once more and fails on any difference: what is committed in gen/ is what the .proto files say.

import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

const before = contents();
execFileSync("npm", ["run", "--silent", "generate"], { stdio: ["ignore", "ignore", "inherit"] });
const after = contents();
const stale = [...new Set([...before.keys(), ...after.keys()])].filter(
  (file) => before.get(file) !== after.get(file),
);
if (stale.length > 0) {
  console.error(`gen/ was stale and is fresh now, commit it:\n${stale.join("\n")}`);
  process.exit(1);
}

function contents(): Map<string, string> {
  const files = readdirSync("gen", { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return new Map(
    files.map(({ parentPath, name }) => {
      const path = `${parentPath}/${name}`;
      return [path, hash("sha256", readFileSync(path), "hex")] as const;
    }),
  );
}
