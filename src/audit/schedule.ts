import { setTimeout as sleep } from "node:timers/promises";
import type { Deps } from "../api/define-service.ts";
import type { Log } from "../telemetry/log.ts";
import { audit, claimAudit } from "./store.ts";

const PAUSE_MS = 60_000;

type Options = Pick<Deps, "database" | "onAudit"> & {
  /** Between the starts of two audits; 0 for none. */
  readonly hours: number;
  readonly log: Log;
};

/** Audits regularly: one of several servers runs each audit. Runs in one process of a server. */
export class AuditSchedule {
  readonly #options: Options;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.hours > 0) this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#auditIfDue().catch((error: unknown) => {
        if (!signal.aborted) this.#options.log.error({ err: error }, "a scheduled audit failed");
      });
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #auditIfDue(): Promise<void> {
    const { database, onAudit, hours, log } = this.#options;
    if (!(await claimAudit(database, hours))) return;
    const report = await audit(database, this.#stop.signal);
    await onAudit(report);
    const { entries, findings } = report;
    if (findings.length === 0) log.info({ entries: String(entries) }, "the scheduled audit found no difference");
    else log.error({ findings: findings.length, first: findings[0] }, "the scheduled audit found differences");
  }
}
