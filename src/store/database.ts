import { DomainError } from "../domain/errors.ts";
import { type ConnectOptions, connect, type DatabaseAddress, type Sql } from "./connect.ts";
import { toDomainError } from "./store-error.ts";

/** A statement that PostgreSQL did not give up in time has lost its connection. */
const GRACE_MS = 1_000;

export type DatabaseOptions = ConnectOptions & {
  /** How many statements may run or wait at once; one more is refused as overloaded. */
  readonly maxStatements: number;
};

type Parameter = string | number | bigint | boolean | Uint8Array | Date | null;

/** A pool of connections that calls functions of schema vx, and nothing else. */
export class Database {
  readonly #address: DatabaseAddress;
  readonly #options: DatabaseOptions;
  #sql: Sql;
  #running = 0;

  constructor(address: DatabaseAddress, options: DatabaseOptions) {
    this.#address = address;
    this.#options = options;
    this.#sql = connect(address, options);
  }

  get running(): number {
    return this.#running;
  }

  get connections(): number {
    return this.#options.connections;
  }

  /** Calls vx.<name> with the parameters and returns its rows. */
  async call<Row>(name: string, ...parameters: Parameter[]): Promise<Row[]> {
    if (this.#running >= this.#options.maxStatements) throw new DomainError("overloaded");
    const places = parameters.map((_, i) => `$${i + 1}`).join(",");
    this.#running++;
    try {
      return (await this.#bounded(`SELECT * FROM vx.${name}(${places})`, parameters)) as Row[];
    } catch (error) {
      throw toDomainError(error);
    } finally {
      this.#running--;
    }
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 5 });
  }

  /** A connection whose other end vanished never answers, so the wait has an end of its own. */
  async #bounded(text: string, parameters: Parameter[]): Promise<unknown> {
    const limitMs = this.#options.statementTimeoutMs + GRACE_MS;
    const sql = this.#sql;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.#replace(sql);
        reject(
          new DomainError("unavailable", {
            cause: new Error(`no answer from the database in ${limitMs} ms`),
          }),
        );
      }, limitMs);
    });
    try {
      return await Promise.race([sql.unsafe(text, parameters, { prepare: true }), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #replace(dead: Sql): void {
    if (this.#sql !== dead) return;
    this.#sql = connect(this.#address, this.#options);
    dead.end({ timeout: 0 }).catch(() => undefined);
  }
}
