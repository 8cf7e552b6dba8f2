// GET /v1/me with admission in PostgreSQL for every call, beside a bare node:http server and the same RPC over Connect.
import { serverEnv } from "./grpc-me.ts";
import { connectGetMeRequest, getMeRequest, openHttpLoad } from "./http-load.ts";
import { type BenchDatabase, type Figure, hammer, median, startProgram } from "./support.ts";

const CONNECTIONS = 64;
const SECONDS = 3;
const ROUNDS = 5;

export async function restMe(database: BenchDatabase): Promise<Figure[]> {
  const server = startProgram(["src/vx.js", "serve"], serverEnv(database.url));
  const secret = await server.next(/vx_live_\w+/);
  const url = await server.next(/^vx ready on (\S+)/);
  const bareServer = startProgram(["bench/bare-server.ts"], {});
  const rest = await openHttpLoad(url, CONNECTIONS, getMeRequest(secret));
  const connect = await openHttpLoad(url, CONNECTIONS, connectGetMeRequest(secret));
  const bare = await openHttpLoad(
    await bareServer.next(/^ready on (\S+)/),
    CONNECTIONS,
    getMeRequest(secret),
  );
  for (const load of [rest, connect, bare]) await hammer(CONNECTIONS, 2, load.call);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      rest: await hammer(CONNECTIONS, SECONDS, rest.call),
      connect: await hammer(CONNECTIONS, SECONDS, connect.call),
      bare: await hammer(CONNECTIONS, SECONDS, bare.call),
    });
  }
  for (const load of [rest, connect, bare]) load.close();
  await server.stop();
  await bareServer.stop();
  return [
    {
      name: `GET /v1/me, ${CONNECTIONS} connections`,
      value: median(rounds.map((r) => r.rest.perSecond)),
      unit: "/s",
    },
    { name: "  p50", value: median(rounds.map((r) => r.rest.p50Ms)), unit: "ms" },
    { name: "  p99", value: median(rounds.map((r) => r.rest.p99Ms)), unit: "ms" },
    {
      name: "  p99 / p50",
      value: median(rounds.map((r) => r.rest.p99Ms / r.rest.p50Ms)),
      unit: "×",
      atMost: 8,
    },
    {
      name: "bare node:http, the same bytes",
      value: median(rounds.map((r) => r.bare.perSecond)),
      unit: "/s",
    },
    {
      name: "REST / bare node:http",
      value: median(rounds.map((r) => r.rest.perSecond / r.bare.perSecond)),
      unit: "×",
      atLeast: 0.33,
    },
    {
      name: "the same RPC as Connect JSON",
      value: median(rounds.map((r) => r.connect.perSecond)),
      unit: "/s",
    },
    {
      name: "REST / Connect JSON",
      value: median(rounds.map((r) => r.rest.perSecond / r.connect.perSecond)),
      unit: "×",
      atLeast: 4,
    },
  ];
}
