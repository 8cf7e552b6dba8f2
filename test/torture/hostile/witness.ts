import { Agent, request } from "node:http";

const EVERY_MS = 20;
const PATIENCE_MS = 10_000;

/** An honest caller that sends GET /v1/me every 20 ms, independent of the responses. */
export class Witness {
  readonly #url: string;
  readonly #secret: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #latencies: number[] = [];
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #failed = 0;

  constructor(url: string, secret: string) {
    this.#url = url;
    this.#secret = secret;
    this.#sendFrom(performance.now() + EVERY_MS);
  }

  async stop() {
    clearTimeout(this.#timer);
    await Promise.all(this.#running);
    this.#agent.destroy();
    const sorted = this.#latencies.sort((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    return { calls: sorted.length + this.#failed, failed: this.#failed, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
  }

  /** A late timer sends the missed calls at once; latency counts from their planned time. */
  #sendFrom(plannedAt: number): void {
    this.#timer = setTimeout(
      () => {
        let next = plannedAt;
        for (; next <= performance.now(); next += EVERY_MS) this.#send(next);
        this.#sendFrom(next);
      },
      Math.max(plannedAt - performance.now(), 0),
    );
  }

  #send(plannedAt: number): void {
    const sent = this.#ask()
      .then((status) => {
        if (status === 200) this.#latencies.push(performance.now() - plannedAt);
        else this.#failed++;
      })
      .finally(() => this.#running.delete(sent));
    this.#running.add(sent);
  }

  /** Resolves to the status, or 0 without a response. */
  #ask(): Promise<number> {
    return new Promise((resolve) => {
      const headers = { authorization: `Bearer ${this.#secret}` };
      const call = request(`${this.#url}/v1/me`, { agent: this.#agent, headers, timeout: PATIENCE_MS }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode ?? 0));
        answer.on("error", () => resolve(0));
      });
      call.on("timeout", () => call.destroy());
      call.on("error", () => resolve(0));
      call.end();
    });
  }
}
