import { chownSync } from "node:fs";

/** An ordinary user with a name, which PostgreSQL needs. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

export function asOrdinaryUser(program: string, ...args: string[]): [string, ...string[]] {
  if (!isRoot) return [program, ...args];
  return ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", program, ...args];
}

export function giveToOrdinaryUser(folder: string): void {
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
}
