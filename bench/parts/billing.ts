// Durable holds and settlements directly against the store, batched, over many accounts and over one.
import { createGenerations } from "../billing-load.ts";
import type { Checkout } from "../checkout.ts";
import { type Load, runCallers } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { type Server, startServer } from "../server.ts";
import { openStore } from "../store.ts";

const ACCOUNTS = 1_000;
const CALLERS = 256;
const SECONDS = 2;

export const billing: Part<{ many: Load; hot: Load; alone: Load }> = {
  rounds: 3,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const generate = await openBilling(checkout, cleanup, server, ACCOUNTS);
    const anyAccount = () => generate(Math.floor(Math.random() * ACCOUNTS));
    return {
      many: () => runCallers(CALLERS, SECONDS, anyAccount),
      hot: () => runCallers(CALLERS, SECONDS, () => generate(0)),
      alone: () => runCallers(1, SECONDS, anyAccount),
    };
  },
  figures: [
    { name: `hold and settle, ${CALLERS} callers, ${ACCOUNTS} accounts`, unit: "/s", value: (r) => r.many.perSecond },
    { name: `hold and settle, ${CALLERS} callers, one account`, unit: "/s", value: (r) => r.hot.perSecond },
    { name: "one account / many accounts", unit: "×", min: 0.8, value: (r) => r.hot.perSecond / r.many.perSecond },
    { name: "hold and settle, one caller, p50", unit: "ms", value: (r) => r.alone.p50Ms },
  ],
};

/** Holds and settles a call of the account with this number, in the database of the server. */
export async function openBilling(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  server: Server,
  accounts: number,
): Promise<(at: number) => Promise<void>> {
  const payers = await createPayers(server, accounts);
  const store = await openStore(checkout, cleanup, { dataDir: server.dataDir, connections: 1 });
  return await createGenerations(checkout, store, payers);
}
