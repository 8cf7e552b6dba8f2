import { setTimeout as wait } from "node:timers/promises";
import type { JSONValue } from "postgres";
import { DomainError } from "../../domain/errors.ts";
import type { DatabaseAddress } from "./endpoints.ts";
import { type Session, SessionOpener, type SessionOptions } from "./session.ts";
import { keepsSession } from "./store-error.ts";

/**
 * PostgreSQL cancels a late statement itself; if it has not done so after this extra time, the connection
 * counts as lost.
 */
const GRACE_MS = 1_000;
const RECONNECT_MS = 200;

/** An array of objects is sent as JSON. */
export type Parameter = string | number | bigint | boolean | Uint8Array | Date | null | readonly JSONValue[];

/**
 * One connection, opened on first use. It is replaced when it is lost, when a statement times out, and after
 * an error that a new connection might avoid.
 */
export class Connection {
  readonly #limitMs: number;
  readonly #opener: SessionOpener;
  #session: Session | undefined;
  #opening: Promise<Session> | undefined;
  /** The pause between a failed attempt to connect and the next one. */
  #pause: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(address: DatabaseAddress, options: SessionOptions) {
    this.#limitMs = options.statementTimeoutMs + GRACE_MS;
    this.#opener = new SessionOpener(address, options);
  }

  async run(text: string, parameters: Parameter[]): Promise<unknown> {
    return await this.#use(async ({ sql }) => await sql.unsafe(text, parameters, { prepare: true }));
  }

  /** Throws unless a new transaction can write. */
  async requireWritable(): Promise<void> {
    await this.#use((session) => session.requireWritable());
  }

  /** Waits a few seconds for a running statement. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#opening?.catch(() => undefined);
    await this.#session?.close();
  }

  /** A connection whose peer disappeared never responds, so this also limits the wait. */
  async #use<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    let used: Session | undefined;
    let isLate = false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        if (used) this.#drop(used);
        const cause = new Error(`no answer from the database in ${this.#limitMs} ms`);
        reject(new DomainError("unavailable", { cause }));
      }, this.#limitMs);
    });
    const done = this.#open().then((session) => {
      // The timeout told the caller that nothing was executed, so the statement must not be sent.
      if (isLate) throw new DomainError("unavailable");
      used = session;
      return work(session);
    });
    try {
      return await Promise.race([done, late]);
    } catch (error) {
      if (used && !keepsSession(error)) this.#drop(used);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #open(): Promise<Session> {
    if (this.#session?.isOpen) return this.#session;
    this.#opening ??= this.#openAnother().finally(() => {
      this.#opening = undefined;
    });
    return await this.#opening;
  }

  async #openAnother(): Promise<Session> {
    await this.#pause;
    if (this.#closed) throw new DomainError("unavailable");
    try {
      this.#session = await this.#opener.open();
    } catch (error) {
      this.#pause = wait(RECONNECT_MS, undefined, { ref: false });
      // No statement was sent, so the error is "unavailable" for any cause.
      throw new DomainError("unavailable", { cause: error });
    }
    return this.#session;
  }

  #drop(session: Session): void {
    session.destroy();
    if (this.#session === session) this.#session = undefined;
  }
}
