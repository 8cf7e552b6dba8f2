// Fails if the packages that `npm ci --omit=dev` installs take more disk space than the limit.
import { execFileSync } from "node:child_process";
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

const MAX_MEGABYTES = 375;
const BYTES_PER_BLOCK = 512;

const folders = execFileSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "ignore"],
})
  .trim()
  .split("\n")
  .filter((folder) => folder !== process.cwd());
const sizes = folders.map((folder) => ({ folder, megabytes: diskUse(folder) / 1e6 })).sort((a, b) => b.megabytes - a.megabytes);
const total = sizes.reduce((sum, { megabytes }) => sum + megabytes, 0);
console.log(`${total.toFixed(0)} MB in ${sizes.length} packages without development dependencies`);
if (total > MAX_MEGABYTES) {
  console.error(`the limit is ${MAX_MEGABYTES} MB; the largest packages:`);
  for (const { folder, megabytes } of sizes.slice(0, 10)) console.error(`${megabytes.toFixed(1)} MB ${folder}`);
  process.exitCode = 1;
}

/** Without nested packages: npm lists them separately. */
function diskUse(folder: string): number {
  const entries: Dirent[] = readdirSync(folder, { withFileTypes: true });
  return entries
    .filter(({ name }) => name !== "node_modules")
    .map((entry) => join(folder, entry.name))
    .map((path) => {
      const stats = lstatSync(path);
      return stats.blocks * BYTES_PER_BLOCK + (stats.isDirectory() ? diskUse(path) : 0);
    })
    .reduce((sum, bytes) => sum + bytes, 0);
}
