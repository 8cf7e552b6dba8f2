import type { Billing } from "../../src/generations/billing.ts";
import { endOf, holdOf, newGenerationId, type Payer } from "../support/payer.ts";

const HOLD = 50n;
const CHARGE = 10n;

/** Callers that hold and charge one generation after the other until they are stopped. */
export class Callers {
  /** Generations whose charge was confirmed. */
  ended = 0;
  slowestMs = 0;
  readonly failures: unknown[] = [];
  readonly #loops: readonly Promise<void>[];
  #stopped = false;

  constructor(billings: readonly Billing[], payers: readonly Payer[], count: number) {
    this.#loops = Array.from({ length: count }, (_, i) =>
      this.#run(billings[i % billings.length] as Billing, payers[i % payers.length] as Payer),
    );
  }

  get chargedMicros(): bigint {
    return BigInt(this.ended) * CHARGE;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #run(billing: Billing, payer: Payer): Promise<void> {
    while (!this.#stopped) {
      const id = newGenerationId(payer);
      const start = performance.now();
      try {
        const { outcome } = await billing.hold(holdOf(payer, HOLD, id));
        if (outcome !== "held") throw new Error(`the hold is ${outcome}`);
        await billing.end(endOf(payer, id, CHARGE));
        this.ended++;
      } catch (error) {
        this.failures.push(error);
      }
      this.slowestMs = Math.max(this.slowestMs, performance.now() - start);
    }
  }
}
