// The longest time for which the largest accepted inputs block the event loop. test/field/large-work.test.ts states
// how often each of them lets other work run.

import { LARGE_WORK } from "../../test/support/large-work.ts";
import type { Checkout } from "../checkout.ts";
import { longestTurnMs } from "../longest-turn.ts";
import type { AnyPart } from "../part.ts";

const MAX_TURN_MS = 50;

export const turns: AnyPart = {
  rounds: 3,
  // Compiling takes CPU time, too.
  warmUpRounds: 1,
  open: async (checkout) => {
    const all = await workOf(checkout);
    return Object.fromEntries(
      all.map(({ name, concurrent = 1, prepare }) => [
        name,
        async () => {
          const work = prepare();
          const start = () => Promise.all(Array.from({ length: concurrent }, work));
          // They start in one turn, which is measured too.
          return { longestTurnMs: await longestTurnMs(Promise.resolve().then(start)) };
        },
      ]),
    );
  },
  figures: LARGE_WORK.map(({ name, concurrent = 1 }) => ({
    name: concurrent > 1 ? `${concurrent} × ${name}` : name,
    unit: "ms",
    max: MAX_TURN_MS,
    value: (round) => round[name]?.longestTurnMs ?? Number.NaN,
  })),
};

async function workOf(checkout: Checkout) {
  const { LARGE_WORK: all } =
    await checkout.load<typeof import("../../test/support/large-work.ts")>("test/support/large-work.ts");
  return all;
}
