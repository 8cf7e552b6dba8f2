import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A deliberate bug. The old text is in exactly one file, so that a file that moves breaks no mutant. */
export type Mutant = { readonly name: string; readonly old: string; readonly new: string };
export type PlacedMutant = Mutant & { readonly path: string };

/** The mutants of all files of this folder. */
export function readMutants(): Mutant[] {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".json"));
  return files.flatMap((name) => JSON.parse(readFileSync(join(import.meta.dirname, name), "utf8")) as Mutant[]);
}

/** Finds the file of each mutant in the repository of the current folder. */
export function placeMutants(mutants: readonly Mutant[]): { placed: PlacedMutant[]; problems: string[] } {
  const paths = execFileSync("git", ["ls-files", "-z", "src", "console"], { encoding: "utf8" }).split("\0");
  const sources = paths.filter((path) => path !== "").map((path) => ({ path, text: readFileSync(path, "utf8") }));
  const placed: PlacedMutant[] = [];
  const problems: string[] = [];
  for (const mutant of mutants) {
    const found = sources.flatMap(({ path, text }) => Array(text.split(mutant.old).length - 1).fill(path));
    if (found.length === 1) placed.push({ ...mutant, path: found[0] as string });
    else problems.push(`"${mutant.name}": the old text is found ${found.length} times in src and console`);
  }
  const names = mutants.map(({ name }) => name);
  for (const name of new Set(names.filter((one, i) => names.indexOf(one) !== i)))
    problems.push(`"${name}": several mutants have this name`);
  return { placed, problems };
}
