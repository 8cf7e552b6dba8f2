// Checks the money invariants under faults: npm run torture [-- --short --seed N --rounds N --only "name"].
import { parseArgs } from "node:util";
import { runTorture } from "./torture.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    seed: { type: "string" },
    rounds: { type: "string", default: "3" },
    only: { type: "string" },
  },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const rounds = values.short ? 1 : Number(values.rounds);
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(rounds) || rounds < 1) {
  console.error("--seed and --rounds are whole numbers");
  process.exit(2);
}
// Exit explicitly: idle keep-alive connections of the clients would keep the process alive.
process.exit(await runTorture({ seed, rounds, isShort: values.short, only: values.only }));
