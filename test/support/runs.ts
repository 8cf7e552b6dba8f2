import fc from "fast-check";

const DEFAULT_RUNS = 100;
const SEED = 1;

/** Random values are the same in every run of the suite, except in `npm run explore`, which sets this. */
const factor = process.env.VX_TEST_EXPLORE;

fc.configureGlobal({ numRuns: runs(DEFAULT_RUNS), ...(factor === undefined && { seed: SEED }) });

/** How many random values a property is checked for; more in `npm run explore`. */
export function runs(count: number): number {
  return count * Number(factor ?? 1);
}
