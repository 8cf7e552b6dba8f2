// The size of the primary key of holds while two million holds are placed and settled. Each row lives for milliseconds, so the
// index stays small only if PostgreSQL reuses its pages.
import postgres from "postgres";
import { loginIn } from "../../test/support/embedded.ts";
import type { Part } from "../part.ts";
import { startServer } from "../server.ts";
import { openBilling } from "./billing.ts";

const ACCOUNTS = 1_000;
const CALLERS = 256;
const HOLDS_PER_STEP = 200_000;
const STEPS = 10;
const MEBIBYTE = 1_048_576;

type Sizes = { readonly first: number; readonly largest: number };

export const holds: Part<{ index: Sizes }> = {
  rounds: 1,
  warmUpRounds: 0,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const generate = await openBilling(checkout, cleanup, server, ACCOUNTS);
    const owner = postgres({ ...loginIn(server.dataDir), max: 1, onnotice: () => undefined });
    cleanup.defer(() => owner.end());
    const place = async (count: number) => {
      let left = count;
      const caller = async () => {
        while (left-- > 0) await generate(Math.floor(Math.random() * ACCOUNTS));
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
    };
    return {
      index: async () => {
        const sizes: number[] = [];
        for (let step = 1; step <= STEPS; step++) {
          await place(HOLDS_PER_STEP);
          const [row] = await owner<{ bytes: string }[]>`SELECT pg_relation_size('vx.holds_pkey') AS bytes`;
          sizes.push(Number(row?.bytes) / MEBIBYTE);
        }
        return { first: sizes[0] ?? 0, largest: Math.max(...sizes) };
      },
    };
  },
  figures: [
    { name: "primary key of holds after 200,000 holds", unit: "MiB", value: ({ index }) => index.first },
    { name: "its largest size until two million holds", unit: "MiB", value: ({ index }) => index.largest },
    { name: "largest size / size after 200,000 holds", unit: "×", max: 3, value: ({ index }) => index.largest / index.first },
  ],
};
