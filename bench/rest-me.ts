// GET /v1/me with admission in PostgreSQL per call, compared with a bare node:http server and with the same
// RPC over Connect, on our server and on a plain connect-node server without keys.
import { START } from "../test/support/start-script.ts";
import { serverEnv } from "./grpc-me.ts";
import { connectGetMeRequest, getMeRequest, openHttpLoad } from "./http-load.ts";
import { type BenchDatabase, type Figure, hammer, median, startProgram } from "./support.ts";

const CONNECTIONS = 64;
const SECONDS = 3;
const ROUNDS = 5;

export async function restMe(database: BenchDatabase): Promise<Figure[]> {
  const server = startProgram(START, serverEnv(database.url));
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
  const plainServer = startProgram(["bench/baseline-server.ts", "http1"], {});
  const plain = await openHttpLoad(
    await plainServer.next(/^ready on (\S+)/),
    CONNECTIONS,
    connectGetMeRequest(secret),
  );
  const loads = [rest, connect, bare, plain];
  for (const load of loads) await hammer(CONNECTIONS, 2, load.call);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      rest: await hammer(CONNECTIONS, SECONDS, rest.call),
      connect: await hammer(CONNECTIONS, SECONDS, connect.call),
      bare: await hammer(CONNECTIONS, SECONDS, bare.call),
      plain: await hammer(CONNECTIONS, SECONDS, plain.call),
    });
  }
  for (const load of loads) load.close();
  for (const program of [server, bareServer, plainServer]) await program.stop();
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
    },
    {
      name: "the same RPC, connect-node without keys",
      value: median(rounds.map((r) => r.plain.perSecond)),
      unit: "/s",
    },
    {
      name: "REST / connect-node without keys",
      value: median(rounds.map((r) => r.rest.perSecond / r.plain.perSecond)),
      unit: "×",
      atLeast: 4,
    },
  ];
}
