import { DomainError } from "../domain/errors.ts";
import { type ConnectOptions, connect, type DatabaseAddress, type Sql } from "./connect.ts";

/** A statement that PostgreSQL did not give up in time has lost its connection. */
const GRACE_MS = 1_000;

export type Parameter = string | number | bigint | boolean | Uint8Array | Date | null;

/** One connection, opened when it is first needed. A statement that is late loses it; the next one gets a new one. */
export class Connection {
  readonly #address: DatabaseAddress;
  readonly #options: ConnectOptions;
  #sql: Sql;

  constructor(address: DatabaseAddress, options: Omit<ConnectOptions, "connections">) {
    this.#address = address;
    this.#options = { ...options, connections: 1 };
    this.#sql = connect(address, this.#options);
  }

  /** A connection whose other end vanished never answers, so the wait has an end of its own. */
  async run(text: string, parameters: Parameter[]): Promise<unknown> {
    const limitMs = this.#options.statementTimeoutMs + GRACE_MS;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.#replace();
        const cause = new Error(`no answer from the database in ${limitMs} ms`);
        reject(new DomainError("unavailable", { cause }));
      }, limitMs);
    });
    try {
      return await Promise.race([this.#sql.unsafe(text, parameters, { prepare: true }), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 5 });
  }

  #replace(): void {
    const late = this.#sql;
    this.#sql = connect(this.#address, this.#options);
    late.end({ timeout: 0 }).catch(() => undefined);
  }
}
