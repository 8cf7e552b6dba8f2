// Checks the money invariants under faults: npm run torture [-- --short --seed N --rounds N --only "name"
// --delay MS]. With --delay, a round trip to the database takes MS milliseconds more. With --engine citus, the
// cells are in a Citus cluster, and --moves N says how often their schemas move.
import { parseArgs } from "node:util";
import { runCitusTorture } from "./citus/run.ts";
import { runTorture } from "./torture.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    seed: { type: "string" },
    rounds: { type: "string", default: "3" },
    only: { type: "string" },
    delay: { type: "string", default: "0" },
    engine: { type: "string", default: "postgresql" },
    moves: { type: "string", default: "20" },
  },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const rounds = values.short ? 1 : Number(values.rounds);
const moves = values.short ? 2 : Number(values.moves);
const roundTripMs = Number(values.delay);
if (![seed, rounds, moves, roundTripMs].every(Number.isSafeInteger) || rounds < 1) {
  console.error("--seed, --rounds, --moves and --delay are whole numbers");
  process.exit(2);
}
if (!["citus", "postgresql"].includes(values.engine)) {
  console.error("--engine is citus or postgresql");
  process.exit(2);
}
// Exit explicitly: idle keep-alive connections of the clients would keep the process alive.
process.exit(
  values.engine === "citus"
    ? await runCitusTorture({ seed, moves, isShort: values.short, only: values.only })
    : await runTorture({ seed, rounds, isShort: values.short, only: values.only, roundTripMs }),
);
