import { readFileSync } from "node:fs";

/** The release of this code. */
export const RELEASE: string = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")).version;

/** Compares release numbers such as "1.10.2" part by part; negative if the first is older. */
export function compareReleases(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function partsOf(release: string): number[] {
  return release.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0);
}

/** An error with a one-line message for the operator. */
export class MigrationError extends Error {}
