import { setTimeout as wait } from "node:timers/promises";
import { DomainError } from "../../domain/errors.ts";
import type { DatabaseAddress } from "./endpoints.ts";
import { Hosts } from "./hosts.ts";
import type { History, Session, SessionOptions } from "./session.ts";
import { keepsSession } from "./store-error.ts";

/**
 * PostgreSQL cancels a late statement itself; if it has not done so after this extra time, the connection
 * counts as lost.
 */
const GRACE_MS = 1_000;
const RECONNECT_MS = 200;

/** Opens the sessions of a connection. */
type SessionSource = { open(options: SessionOptions): Promise<Session> };

export type Parameter = string | number | bigint | boolean | Uint8Array | Date | null;

type State =
  | { readonly name: "disconnected" }
  | { readonly name: "connecting"; readonly session: Promise<Session> }
  | { readonly name: "connected"; readonly session: Session }
  | { readonly name: "closed" };

/**
 * One connection, opened on first use. It is replaced when it is lost, when a statement times out, and after
 * an error that a new connection might avoid.
 */
export class Connection {
  readonly #limitMs: number;
  readonly #source: SessionSource;
  readonly #options: SessionOptions;
  #state: State = { name: "disconnected" };
  /** The pause between a failed attempt to connect and the next one. */
  #pause: Promise<void> = Promise.resolve();

  constructor(source: DatabaseAddress | SessionSource, options: SessionOptions) {
    this.#limitMs = options.statementTimeoutMs + GRACE_MS;
    this.#source = "open" in source ? source : new Hosts(source);
    this.#options = options;
  }

  async query(text: string, parameters: Parameter[]): Promise<unknown> {
    return await this.#withSession(async ({ sql }) => await sql.unsafe(text, parameters, { prepare: true }));
  }

  /** Throws unless a new transaction can write. */
  async requireWritable(): Promise<void> {
    await this.#withSession((session) => session.requireWritable());
  }

  /** The history that the server writes; undefined if it cannot write. */
  async readHistory(): Promise<History | undefined> {
    return await this.#withSession((session) => session.readHistory());
  }

  /** Waits a few seconds for a running statement. */
  async close(): Promise<void> {
    const state = this.#state;
    this.#state = { name: "closed" };
    if (state.name === "connecting") {
      const session = await state.session.catch(() => undefined);
      await session?.close();
    }
    if (state.name === "connected") await state.session.close();
  }

  /** A connection whose peer disappeared never responds, so this also limits the wait. */
  async #withSession<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    let used: Session | undefined;
    let isLate = false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        if (used) this.#discard(used);
        const cause = new Error(`no response from the database within ${this.#limitMs} ms`);
        reject(new DomainError("unavailable", { cause }));
      }, this.#limitMs);
    });
    const done = this.#getSession().then((session) => {
      // The caller already got an error that says nothing was executed, so the statement must not be sent.
      if (isLate) throw new DomainError("unavailable");
      used = session;
      return work(session);
    });
    try {
      return await Promise.race([done, late]);
    } catch (error) {
      if (used && !keepsSession(error)) this.#discard(used);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #getSession(): Promise<Session> {
    const state = this.#state;
    switch (state.name) {
      case "closed":
        throw new DomainError("unavailable");
      case "connecting":
        return await state.session;
      case "connected":
        if (state.session.isOpen) return state.session;
        break;
      case "disconnected":
    }
    const session = this.#connect();
    this.#state = { name: "connecting", session };
    return await session;
  }

  async #connect(): Promise<Session> {
    await this.#pause;
    if (this.#isClosed()) throw new DomainError("unavailable");
    try {
      const session = await this.#source.open(this.#options);
      if (!this.#isClosed()) this.#state = { name: "connected", session };
      return session;
    } catch (error) {
      if (!this.#isClosed()) this.#state = { name: "disconnected" };
      this.#pause = wait(RECONNECT_MS, undefined, { ref: false });
      // No statement was sent, so the error is "unavailable" for any cause.
      throw new DomainError("unavailable", { cause: error });
    }
  }

  #isClosed(): boolean {
    return this.#state.name === "closed";
  }

  #discard(session: Session): void {
    session.destroy();
    if (this.#state.name === "connected" && this.#state.session === session) {
      this.#state = { name: "disconnected" };
    }
  }
}
