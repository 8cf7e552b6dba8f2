// The cost of metering for a single caller: the server compared with one whose holds and settlements cost
// nothing.
import { START } from "../test/support/start-script.ts";
import { generateBody, openHttpLoad, postRequest } from "./http-load.ts";
import { createPayers } from "./payers.ts";
import { startServer } from "./server.ts";
import { type BenchDatabase, type Figure, hammer, median } from "./support.ts";

const ACCOUNTS = 1_000;
const SECONDS = 2;
const ROUNDS = 7;

export async function alone(database: BenchDatabase): Promise<Figure[]> {
  const payers = await createPayers(database.owner, ACCOUNTS);
  const requests = payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
  const servers = [
    await startServer(database),
    await startServer(database, {}, ["--import", "./bench/free-billing.ts", ...START]),
  ] as const;
  const [metered, free] = [
    await openHttpLoad(servers[0].url, 1, requests),
    await openHttpLoad(servers[1].url, 1, requests),
  ];
  for (const load of [metered, free]) await hammer(1, 2, load.call);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      metered: await hammer(1, SECONDS, metered.call),
      free: await hammer(1, SECONDS, free.call),
    });
  }
  for (const load of [metered, free]) load.close();
  for (const server of servers) await server.stop();
  return [
    {
      name: "POST /v1/generate, one caller, p50",
      value: median(rounds.map((r) => r.metered.p50Ms)),
      unit: "ms",
    },
    { name: "the same without hold and settle", value: median(rounds.map((r) => r.free.p50Ms)), unit: "ms" },
    {
      name: "metering adds",
      value: median(rounds.map((r) => r.metered.p50Ms - r.free.p50Ms)),
      unit: "ms",
      atMost: 2,
    },
  ];
}
