// The CPU time that OpenTelemetry adds to POST /v1/generate on the sandbox: all calls traced and exported, compared with
// the default, in which nothing of it is loaded. Both servers are loaded at the same time, so that other programs slow
// both down. `--against` a checkout without OpenTelemetry shows what the default costs.

import { withCpuTime } from "../cpu-time.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline } from "../program.ts";
import { startServer } from "../server.ts";

const ACCOUNTS = 1_000;
const CONNECTIONS = 32;
const SECONDS = 2;
/** No span is dropped, however long exports wait for CPU time: a dropped span costs less. */
const QUEUE = "65536";

type CpuMicros = { readonly off: number; readonly traced: number };

export const openTelemetry: Part<{ both: CpuMicros }> = {
  rounds: 15,
  warmUpRounds: 3,
  open: async (checkout, cleanup) => {
    const collector = await startBaseline(cleanup, "collector-server");
    const openServer = async (env: Record<string, string>) => {
      const server = await startServer(checkout, cleanup, { env });
      const payers = await createPayers(server, ACCOUNTS);
      const requests = payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
      const load = { url: server.url, requests, connections: CONNECTIONS, seconds: SECONDS };
      return withCpuTime(server.pid, httpArm(load));
    };
    const measureOff = await openServer({});
    const measureTraced = await openServer({
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector,
      OTEL_BSP_MAX_QUEUE_SIZE: QUEUE,
    });
    return {
      both: async () => {
        const [off, traced] = await Promise.all([measureOff(), measureTraced()]);
        return { off: off.cpuMicros, traced: traced.cpuMicros };
      },
    };
  },
  figures: [
    { name: "POST /v1/generate, CPU time of server and PostgreSQL per call", unit: "µs", value: (r) => r.both.off },
    { name: "the same with all calls traced", unit: "µs", value: (r) => r.both.traced },
    { name: "with all calls traced / without OpenTelemetry", unit: "×", max: 1.15, value: (r) => r.both.traced / r.both.off },
  ],
};
