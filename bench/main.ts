// Prints the figures of docs/performance.md: npm run bench [-- part …]. Exits with 1 if a figure misses its
// floor or ceiling.
import { admission } from "./admission.ts";
import { alone } from "./alone.ts";
import { bigBody } from "./big-body.ts";
import { bigLedger } from "./big-ledger.ts";
import { billing } from "./billing.ts";
import { gateway } from "./gateway.ts";
import { generate } from "./generate.ts";
import { grpcMe } from "./grpc-me.ts";
import { admissionMemory, idleMemory } from "./memory.ts";
import { restMe } from "./rest-me.ts";
import { streams } from "./streams.ts";
import { type BenchDatabase, type Figure, startDatabase } from "./support.ts";
import { upstreams } from "./upstreams.ts";

/** Rows of the big ledger; --rows=1000000 gives a shorter run. */
const rows = Number(/--rows=(\d+)/.exec(process.argv.join(" "))?.[1] ?? 10_000_000);

const parts: Record<string, (database: BenchDatabase) => Promise<Figure[]>> = {
  admission,
  billing,
  generate,
  alone,
  gateway,
  streams,
  "big-body": bigBody,
  "big-ledger": (database) => bigLedger(database, rows),
  "grpc-me": grpcMe,
  "rest-me": restMe,
  upstreams,
  "idle-memory": idleMemory,
  "admission-memory": (database) => admissionMemory(database, 10_000_000),
};

const asked = process.argv.slice(2).filter((name) => !name.startsWith("--"));
const unknown = asked.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0) {
  console.error(`there is no part ${unknown.join(", ")}; there are ${Object.keys(parts).join(", ")}`);
  process.exit(2);
}
for (const [name, run] of Object.entries(parts)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  console.log(`\n${name}`);
  const database = await startDatabase();
  try {
    for (const figure of await run(database)) print(figure);
  } finally {
    await database.stop();
  }
}

function print({ name, value, unit, atLeast, atMost }: Figure): void {
  const digits = value < 100 ? 2 : 0;
  const text = value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
  const missed = (atLeast !== undefined && value < atLeast) || (atMost !== undefined && value > atMost);
  const bound =
    atLeast === undefined
      ? atMost === undefined
        ? ""
        : `at most ${atMost}`
      : `at least ${atLeast.toLocaleString("en")}`;
  console.log(
    `  ${name.padEnd(48)} ${text.padStart(10)} ${unit.padEnd(4)} ${bound}${missed ? "  MISSED" : ""}`,
  );
  if (missed) process.exitCode = 1;
}
