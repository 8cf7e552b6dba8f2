import { expect, test } from "vitest";
import { LARGE_WORK } from "../support/large-work.ts";
import { turnsOf } from "../support/turns.ts";

test.each(LARGE_WORK.filter(({ minTurns }) => minTurns > 0))(
  "other work runs at least $minTurns times during $name",
  async ({ minTurns, prepare }) => {
    expect(await turnsOf(prepare())).toBeGreaterThanOrEqual(minTurns);
  },
);
