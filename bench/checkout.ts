import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** A folder with the sources and installed dependencies of one version. */
export type Checkout = {
  readonly folder: string;
  /** The arguments that its `npm start` passes to Node: flags, program and command. */
  readonly start: readonly string[];
  /** The environment that its `npm start` sets. */
  readonly env: Readonly<Record<string, string>>;
  /** Imports a module of this version. `Module` is the type of the same module here. */
  load<Module>(path: string): Promise<Module>;
};

export function openCheckout(path: string): Checkout {
  const folder = resolve(path);
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { scripts: { start: string } };
  const [, assignments = "", start = ""] = /^((?:\w+=\S+ )*)(?:exec )?node (.*)$/.exec(scripts.start) ?? [];
  return {
    folder,
    start: start.split(" "),
    env: Object.fromEntries(
      assignments
        .split(" ")
        .filter(Boolean)
        .map((one) => one.split("=")),
    ),
    load: (module) => import(pathToFileURL(join(folder, module)).href),
  };
}

export const OWN_CHECKOUT = openCheckout(join(import.meta.dirname, ".."));
