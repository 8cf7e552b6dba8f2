// npm run bench [-- part …]               prints the figures of docs/performance.md; exits with 1 if a figure
//                                         that has a limit misses it
// npm run bench -- [part …] --against DIR compares this checkout with the one in DIR, in interleaved rounds
//                           --rounds N    takes another number of rounds
import { parseArgs } from "node:util";
import { openCheckout } from "./checkout.ts";
import { type AnyPart, compare, measure, Unavailable } from "./part.ts";
import { admission } from "./parts/admission.ts";
import { admissionMemory } from "./parts/admission-memory.ts";
import { alone } from "./parts/alone.ts";
import { bigBody } from "./parts/big-body.ts";
import { bigLedger } from "./parts/big-ledger.ts";
import { billing } from "./parts/billing.ts";
import { cells } from "./parts/cells.ts";
import { citus } from "./parts/citus.ts";
import { createKeys } from "./parts/create-keys.ts";
import { cutStreams } from "./parts/cut-streams.ts";
import { distance } from "./parts/distance.ts";
import { gateway } from "./parts/gateway.ts";
import { generate } from "./parts/generate.ts";
import { grpcGenerate } from "./parts/grpc-generate.ts";
import { grpcMe } from "./parts/grpc-me.ts";
import { grpcStreams } from "./parts/grpc-streams.ts";
import { holds } from "./parts/holds.ts";
import { idleMemory } from "./parts/idle-memory.ts";
import { largeCalls } from "./parts/large-calls.ts";
import { limitsFive, limitsNone, limitsUsers } from "./parts/limits.ts";
import { openTelemetry } from "./parts/open-telemetry.ts";
import { pricesAll, pricesNone } from "./parts/prices.ts";
import { replicas } from "./parts/replicas.ts";
import { restMe } from "./parts/rest-me.ts";
import { storage } from "./parts/storage.ts";
import { streamReaders } from "./parts/stream-readers.ts";
import { streams } from "./parts/streams.ts";
import { turns } from "./parts/turns.ts";
import { upstreams } from "./parts/upstreams.ts";
import { usageExport } from "./parts/usage-export.ts";
import { webhooks } from "./parts/webhooks.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    against: { type: "string" },
    rounds: { type: "string" },
    /** Rows of the big ledger, sums of the usage export; --rows 1000000 gives a shorter run. */
    rows: { type: "string", default: "10000000" },
  },
});

const parts: Record<string, AnyPart> = {
  admission,
  billing,
  generate: generate(64, { min: 0.08, goal: 0.18 }),
  "generate-256": generate(256, { min: 0.1, goal: 0.18 }),
  alone,
  gateway: gateway(64, { min: 1.2, goal: 2.5 }),
  "gateway-256": gateway(256, { min: 1.4, goal: 2.5 }),
  streams,
  ...largeCalls,
  "big-body": bigBody,
  "big-ledger": bigLedger(Number(values.rows)),
  "usage-export": usageExport(Number(values.rows)),
  "grpc-me": grpcMe,
  "grpc-generate": grpcGenerate,
  "grpc-streams": grpcStreams,
  "open-telemetry": openTelemetry,
  "limits-none": limitsNone,
  "limits-five": limitsFive,
  "limits-users": limitsUsers,
  "prices-none": pricesNone,
  "prices-all": pricesAll,
  webhooks,
  "rest-me": restMe(64, { rest: { min: 0.33, goal: 0.42 }, connect: { min: 0.6, goal: 0.7 } }),
  "rest-me-256": restMe(256, { rest: { min: 0.38, goal: 0.45 }, connect: { min: 0.7 } }),
  "create-keys": createKeys,
  replicas,
  cells,
  citus,
  distance,
  storage,
  holds,
  turns,
  upstreams,
  "cut-streams": cutStreams,
  "stream-readers": streamReaders,
  "idle-memory": idleMemory,
  "admission-memory": admissionMemory,
};

const unknown = positionals.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0) {
  console.error(`there is no part ${unknown.join(", ")}; the parts are ${Object.keys(parts).join(", ")}`);
  process.exit(2);
}
const other = values.against === undefined ? undefined : openCheckout(values.against);
if (other) {
  console.log("columns: median here, median there, median ratio of the rounds (here ÷ there),");
  console.log("95 % confidence interval of the mean ratio");
}
for (const [name, part] of Object.entries(parts)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  console.log(`\n${name}`);
  try {
    const rounds = Number(values.rounds ?? part.rounds);
    if (other) await compare(part, other, rounds);
    else if (!(await measure(part, rounds))) process.exitCode = 1;
  } catch (error) {
    // A part that uses modules of the server cannot run in a checkout that has other modules.
    if (!(other || error instanceof Unavailable)) throw error;
    console.log(`  SKIPPED: ${(error as Error).message.split("\n")[0]}`);
  }
}
