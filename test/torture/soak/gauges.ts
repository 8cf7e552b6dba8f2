import type { RunServer } from "../server.ts";
import { OPERATOR_TOKEN } from "../settings.ts";

/** What /metrics says of what waits and runs, all servers together. */
export type Gauges = {
  readonly at: number;
  readonly admissionQueue: number;
  readonly billingQueue: number;
  readonly running: number;
};

export async function readGauges(servers: readonly RunServer[]): Promise<Gauges> {
  const texts = await Promise.all(servers.map(({ adminPort }) => readMetrics(adminPort)));
  const sum = (name: string) => texts.reduce((total, text) => total + gaugeOf(text, name), 0);
  return {
    at: performance.timeOrigin + performance.now(),
    admissionQueue: sum("vx_lane_queue_depth"),
    billingQueue: sum("vx_billing_queue_depth"),
    running: sum("vx_running_generations"),
  };
}

async function readMetrics(port: number): Promise<string> {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  return await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
}

function gaugeOf(text: string, name: string): number {
  const found = new RegExp(`^${name}(?:\\{[^}]*\\})? ([\\d.e+]+)$`, "m").exec(text)?.[1];
  if (found === undefined) throw new Error(`/metrics has no ${name}`);
  return Number(found);
}
