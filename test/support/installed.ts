import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { problemOf } from "./python.ts";

/** Installed toolchains and generated clients. Created once and kept; git ignores it. */
export const CLIENTS = resolve(".clients");

/** Copies a folder with a package.json of exact versions and installs them. Returns the reason if that fails. */
export function installPackages(source: string, folder: string): string | undefined {
  mkdirSync(CLIENTS, { recursive: true });
  cpSync(source, folder, { recursive: true });
  const wanted = readFileSync(join(source, "package.json"), "utf8");
  const stamp = join(folder, "node_modules", "installed.json");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return undefined;
  const problem = problemOf("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--prefer-offline");
  if (problem === undefined) writeFileSync(stamp, wanted);
  return problem;
}

/** Installs a Node from npm, with an npm of its age. Returns the folder of the programs, or the reason if that fails. */
export function installNode(version: string, npm: string): { readonly bin: string } | { readonly problem: string } {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(CLIENTS, `node-${version}`);
  mkdirSync(folder, { recursive: true });
  const install = ["install", "--prefix", folder, "--no-audit", "--no-fund", "--prefer-offline"];
  const problem = problemOf("npm", ...install, `${name}@${version}`, `npm@${npm}`);
  return problem === undefined ? { bin: join(folder, "node_modules/.bin") } : { problem };
}
