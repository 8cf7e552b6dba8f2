import type { Log } from "../telemetry/log.ts";

/** Runs reloads one after the other. One that is requested while the server starts runs when it has started. */
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

  /** From now on a request runs this. */
  start(reload: () => Promise<void>): void {
    this.#started.resolve(reload);
  }
}
