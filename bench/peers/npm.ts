import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Unavailable } from "../part.ts";
import { PEERS } from "./peer.ts";

/**
 * Returns the folder of the package in its node_modules. Installed once and kept, without install scripts. `finish` does the
 * part of them that the gateway needs.
 */
export async function installFromNpm(
  name: string,
  version: string,
  finish: (nodeModules: string) => Promise<void> = async () => undefined,
): Promise<string> {
  const spec = `${name}@${version}`;
  const folder = join(PEERS, spec.replaceAll("/", "-"));
  const nodeModules = join(folder, "node_modules");
  const installed = join(folder, "installed");
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
  try {
    if (!existsSync(installed)) {
      await promisify(execFile)("npm", ["install", ...options, "--prefix", folder, spec]);
      await finish(nodeModules);
      writeFileSync(installed, spec);
    }
  } catch (error) {
    throw new Unavailable(`${spec} cannot be installed: ${(error as Error).message}`);
  }
  return join(nodeModules, name);
}

/** Compiles the native code of a package for the Node in a folder, or downloads it. */
export async function buildNative(nodeModules: string, name: string, node: string): Promise<void> {
  await promisify(execFile)("npm", ["rebuild", name, "--prefix", dirname(nodeModules)], {
    env: { ...process.env, PATH: `${join(node, "bin")}:${process.env.PATH}`, npm_config_nodedir: node },
  });
}
