import type { Log } from "../telemetry/log.ts";

/** Runs reloads one after the other. A reload requested during the start runs after it. */
export class ReloadRequests {
  readonly #log: Log;
  readonly #started = Promise.withResolvers<() => Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  constructor(log: Log) {
    this.#log = log;
  }

  request(): void {
    this.#last = this.#last
      .then(async () => await (await this.#started.promise)())
      .catch((error: unknown) => this.#log.error({ err: error }, "reload failed"));
  }

  /** Sets the function that reloads. */
  start(reload: () => Promise<void>): void {
    this.#started.resolve(reload);
  }
}
