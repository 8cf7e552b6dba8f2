// GetMe over gRPC with a key look-up and admission in PostgreSQL per call, compared with a server that does
// neither.
import { START } from "../test/support/start-script.ts";
import { openGrpcLoad } from "./grpc-load.ts";
import { type BenchDatabase, type Figure, hammer, median, startProgram } from "./support.ts";

const CALLERS = 64;
const CONNECTIONS = 4;
const SECONDS = 3;
const ROUNDS = 5;

export async function grpcMe(database: BenchDatabase): Promise<Figure[]> {
  const server = startProgram(START, serverEnv(database.url));
  const secret = await server.next(/vx_live_\w+/);
  const baseline = startProgram(["bench/baseline-server.ts"], {});
  const ours = openGrpcLoad(await server.next(/^vx ready on (\S+)/), CONNECTIONS, `Bearer ${secret}`);
  const theirs = openGrpcLoad(await baseline.next(/^ready on (\S+)/), CONNECTIONS, undefined);
  await hammer(CALLERS, 2, ours.call);
  await hammer(CALLERS, 2, theirs.call);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      ours: await hammer(CALLERS, SECONDS, ours.call),
      theirs: await hammer(CALLERS, SECONDS, theirs.call),
    });
  }
  ours.close();
  theirs.close();
  await server.stop();
  await baseline.stop();
  return [
    {
      name: `gRPC GetMe, ${CALLERS} callers`,
      value: median(rounds.map((r) => r.ours.perSecond)),
      unit: "/s",
    },
    { name: "  p50", value: median(rounds.map((r) => r.ours.p50Ms)), unit: "ms" },
    { name: "  p99", value: median(rounds.map((r) => r.ours.p99Ms)), unit: "ms" },
    {
      name: "the same without any authentication",
      value: median(rounds.map((r) => r.theirs.perSecond)),
      unit: "/s",
    },
    {
      name: "with / without",
      value: median(rounds.map((r) => r.ours.perSecond / r.theirs.perSecond)),
      unit: "×",
      atLeast: 0.8,
    },
  ];
}

export function serverEnv(url: string): Record<string, string> {
  return { DATABASE_URL: url, VX_SEED_DEMO: "1", PORT: "0", VX_ADMIN_PORT: "0", VX_LOG_LEVEL: "warn" };
}
