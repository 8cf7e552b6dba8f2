import postgres from "postgres";
import type { Cells } from "../src/database/driver/cells.ts";
import { DatabaseClock } from "../src/database/driver/database-clock.ts";
import { loginIn } from "../test/support/embedded.ts";
import type { Checkout } from "./checkout.ts";
import { createPayers, type Payer } from "./payers.ts";
import { startServer } from "./server.ts";
import { openStore } from "./store.ts";

type AdmitModule = typeof import("../src/keys/admit.ts");
type KeyModule = typeof import("../src/domain/credentials.ts");

/** The database is on this machine. */
export const NEAR = new DatabaseClock(() => performance.now());

/** More than the operator's API allows: one key is admitted up to a million times a second. */
const MAX_RPM = 1_000_000_000;

/** Admission through the store, in this process, with the database of an idle server. */
export async function openAdmission(checkout: Checkout, cleanup: AsyncDisposableStack, keyCount: number) {
  const server = await startServer(checkout, cleanup);
  const payers = await createPayers(server, keyCount);
  const owner = postgres({ ...loginIn(server.dataDir), max: 1 });
  await raiseLimits(owner);
  await owner.end();
  const pool = await openStore(checkout, cleanup, { dataDir: server.dataDir, connections: 2 });
  return { dataDir: server.dataDir, ...(await createAdmission(checkout, pool, payers)) };
}

/** Raises the limits of all plans of a cell. */
export async function raiseLimits(owner: postgres.Sql, schema = "vx"): Promise<void> {
  await owner`UPDATE ${owner(schema)}.plans SET rpm = ${MAX_RPM}`;
}

/** Admits calls of the payer with this number. */
export async function createAdmission(checkout: Checkout, store: Cells, payers: readonly Payer[]) {
  const { Admitter } = await checkout.load<AdmitModule>("src/keys/admit.ts");
  const { fingerprintOf, laneOfKey } = await checkout.load<KeyModule>("src/domain/credentials.ts");
  const admitter = new Admitter(store, { pipelines: 1, maxWaiting: 16_384, clocks: store.all.map(() => NEAR) });
  const keys = payers.map(({ secret }) => ({ lane: laneOfKey(secret), fingerprint: fingerprintOf(secret) }));
  return {
    keys,
    admit: async (at: number) => {
      const { outcome } = await admitter.admit({
        ...(keys[at] as (typeof keys)[number]),
        scope: "read",
        address: "127.0.0.1",
        limited: true,
        whileSuspended: false,
      });
      if (outcome !== "admitted") throw new Error(`the call was ${outcome}`);
    },
  };
}
