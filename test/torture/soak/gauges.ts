import { setTimeout as wait } from "node:timers/promises";
import type { Arena } from "../arena.ts";
import type { RunServer } from "../server.ts";
import { OPERATOR_TOKEN } from "../settings.ts";

const GAUGE_MS = 1_000;

/** Queue and concurrency gauges from /metrics, summed over all servers. */
export type Gauges = {
  readonly at: number;
  readonly admissionQueue: number;
  readonly billingQueue: number;
  readonly running: number;
};

async function readGauges(servers: readonly RunServer[]): Promise<Gauges> {
  const texts = await Promise.all(servers.map(({ adminPort }) => readMetrics(adminPort)));
  const sum = (name: string) => texts.reduce((total, text) => total + gaugeOf(text, name), 0);
  return {
    at: performance.timeOrigin + performance.now(),
    admissionQueue: sum("vx_admission_queue_depth"),
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

/** Samples the gauges once a second. */
export class GaugeWatch {
  readonly samples: Gauges[] = [];
  readonly #arena: Arena;
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(arena: Arena) {
    this.#arena = arena;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.samples.push(await readGauges(this.#arena.servers));
      await wait(GAUGE_MS);
    }
  }
}
