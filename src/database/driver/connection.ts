import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { DomainError } from "../../domain/errors.ts";
import type { Endpoint } from "./endpoints.ts";
import { keepsSession } from "./store-error.ts";

export type Sql = postgres.Sql<{ bigint: bigint }>;

export type SessionOptions = {
  /** PostgreSQL cancels a statement after this time. */
  readonly statementTimeoutMs: number;
  /** Shown in pg_stat_activity. */
  readonly name: string;
  /** The role to assume; undefined for the login's own role. */
  readonly role?: string;
  /** Whether to read the history of the server, which some managed databases refuse. */
  readonly readsHistory?: boolean;
};

/**
 * The history that a server writes. A standby that is promoted begins the next timeline, so of two servers of one system that
 * accept writes, the one with the lower timeline is an old primary.
 */
export type History = { readonly system: string; readonly timeline: number };

/**
 * PostgreSQL cancels a late statement itself; if it has not done so after this extra time, the connection
 * counts as lost.
 */
const GRACE_MS = 1_000;
const RECONNECT_MS = 200;
/** How many times as long as a statement locks are kept at most: for the wait for another connection, the move of a lane and the statement. */
const MAX_DURING = 4;

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

  constructor(source: SessionSource, options: SessionOptions) {
    this.#limitMs = options.statementTimeoutMs + GRACE_MS;
    this.#source = source;
    this.#options = options;
  }

  async query(text: string, parameters: Parameter[]): Promise<unknown> {
    return await this.#withSession(async ({ sql }) => await sql.unsafe(text, parameters, { prepare: true }));
  }

  /**
   * Keeps the locks that the statement takes until the work has ended, which is itself limited by its statements. Returns how the work
   * ended: its errors are not those of this connection.
   */
  async during<Result>(text: string, parameter: string, work: () => Promise<Result>): Promise<PromiseSettledResult<Result>> {
    const transaction = async ({ sql }: Session) =>
      await sql.begin(async (statements) => {
        await statements.unsafe("SET LOCAL idle_in_transaction_session_timeout = 0");
        await statements.unsafe(text, [parameter], { prepare: true });
        const [outcome] = await Promise.allSettled([work()]);
        return outcome;
      });
    return await this.#withSession(transaction, MAX_DURING * this.#limitMs);
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
  async #withSession<Result>(work: (session: Session) => Promise<Result>, limitMs = this.#limitMs): Promise<Result> {
    let used: Session | undefined;
    let isLate = false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        if (used) this.#discard(used);
        const cause = new Error(`no response from the database within ${limitMs} ms`);
        reject(new DomainError("unavailable", { cause }));
      }, limitMs);
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

/** Timeout for connecting, authentication and setup together. */
const OPEN_TIMEOUT_MS = 5_000;

/** The server responds but cannot write: it is a standby, or default_transaction_read_only is on. */
export class ReadOnlyError extends Error {
  readonly code = "25006";
  constructor(server: string) {
    super(`${server} is read-only: it is a standby, or default_transaction_read_only is on`);
  }
}

/**
 * One connection that is set up and can write. The session ends with its connection: the driver would
 * reconnect by itself, without the setup, and possibly to another server.
 */
export class Session {
  readonly sql: Sql;
  readonly #endpoint: Endpoint;
  #socket: Socket | undefined;
  #isOpen = true;
  #failure = connectionError("CONNECTION_CLOSED", "the server closed the connection while it was opened");
  #backend = { pid: 0, isPooled: false };
  #state: ServerState = { isReadOnly: true, history: undefined };

  private constructor(endpoint: Endpoint, options: SessionOptions) {
    this.#endpoint = endpoint;
    const settings = {
      ...endpoint.login,
      max: 1,
      connect_timeout: 0,
      max_lifetime: null,
      fetch_types: false,
      onnotice: () => undefined,
      onclose: () => this.#onClose(),
      types: { bigint: postgres.BigInt },
      connection: { application_name: options.name },
      socket: () => this.#dial(),
    };
    this.sql = postgres(endpoint.driverUrl, settings);
  }

  /** Rejects if the server cannot write. */
  static async open(endpoint: Endpoint, options: SessionOptions): Promise<Session> {
    const session = await Session.connect(endpoint, options);
    if (!session.#state.isReadOnly) return session;
    session.destroy();
    throw new ReadOnlyError(endpoint.name);
  }

  /** Also opens a session on a standby. */
  static async connect(endpoint: Endpoint, options: SessionOptions): Promise<Session> {
    const session = new Session(endpoint, options);
    try {
      await session.#setUp(options);
      return session;
    } catch (error) {
      session.destroy();
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether a pooler is between this connection and PostgreSQL: a pooler reports a process id of its own. */
  get isPooled(): boolean {
    return this.#backend.isPooled;
  }

  /** The history when the session was opened; undefined if the options do not ask for it, and on a standby. */
  get history(): History | undefined {
    return this.#state.history;
  }

  get endpoint(): Endpoint {
    return this.#endpoint;
  }

  /** The id of the PostgreSQL process that serves the connection now. The query takes up to two milliseconds there. */
  async backendPid(): Promise<number> {
    const query = "SELECT pg_backend_pid() AS pid FROM pg_sleep(random() * 0.002)";
    const [row] = await this.sql.unsafe<{ pid: number }[]>(query);
    return row?.pid ?? 0;
  }

  /** The current history; undefined if the server cannot write. */
  async readHistory(): Promise<History | undefined> {
    const [row] = await this.sql.unsafe<ServerStateRow[]>(`SELECT ${READ_ONLY}, ${HISTORY}`);
    return row && serverStateOf(row).history;
  }

  /** Throws unless a new transaction can write. */
  async requireWritable(): Promise<void> {
    const [row] = await this.sql.unsafe<{ state: string }[]>("SELECT current_setting('transaction_read_only') AS state");
    if (row?.state !== "off") throw new ReadOnlyError(this.#endpoint.name);
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.sql.end({ timeout: 5 });
  }

  /** Closes the connection at once, even during a statement. */
  destroy(): void {
    this.#isOpen = false;
    this.#socket?.destroy();
    this.#endDriver();
  }

  /**
   * Settings are made by a statement: a pooler such as PgBouncer refuses most of them as startup parameters,
   * and in session mode it keeps those that are made later.
   */
  async #setUp(options: SessionOptions): Promise<void> {
    const timer = setTimeout(() => {
      const problem = `${this.#endpoint.name} did not answer within ${OPEN_TIMEOUT_MS} ms`;
      this.#failure = connectionError("CONNECT_TIMEOUT", problem);
      this.#socket?.destroy();
    }, OPEN_TIMEOUT_MS);
    try {
      const rows = await this.sql.unsafe<(ServerStateRow & { pid: number })[]>(setupText(options));
      const [row] = rows;
      if (!row) throw this.#failure;
      this.#state = serverStateOf(row);
      this.#backend = { pid: row.pid, isPooled: rows.state.pid !== row.pid };
    } catch (error) {
      const isCut = (error as { code?: string }).code === "CONNECTION_CLOSED";
      throw isCut ? this.#failure : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The driver calls this again to reconnect after a connection is lost during setup; the second call throws.
   */
  #dial(): Socket {
    if (this.#socket || !this.#isOpen) throw this.#failure;
    this.#socket = this.#endpoint.dial();
    return this.#socket;
  }

  #onClose(): void {
    this.#isOpen = false;
    this.#endDriver();
  }

  #endDriver(): void {
    this.sql.end({ timeout: 0 }).catch(() => undefined);
  }
}

/** With a code of the driver. */
function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

type ServerState = { readonly isReadOnly: boolean; readonly history: History | undefined };
type ServerStateRow = { readonly read_only: string; readonly system?: string; readonly timeline?: number };

const READ_ONLY = "current_setting('transaction_read_only') AS read_only";
/** The position in the write-ahead log names the timeline; a standby has no position and refuses the function. */
const HISTORY = `(SELECT system_identifier::text FROM pg_control_system()) AS system,
  CASE WHEN pg_is_in_recovery() THEN 0
       ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int END AS timeline`;

function serverStateOf({ read_only, system, timeline }: ServerStateRow): ServerState {
  const isReadOnly = read_only !== "off";
  const isKnown = !isReadOnly && system !== undefined && timeline !== undefined;
  return { isReadOnly, history: isKnown ? { system, timeline } : undefined };
}

function setupText({ statementTimeoutMs, role, readsHistory }: SessionOptions): string {
  const settings: [string, string][] = [
    ["statement_timeout", String(statementTimeoutMs)],
    ["idle_in_transaction_session_timeout", String(statementTimeoutMs)],
    // The formats of values that the driver reads, whatever the database or the login sets.
    ["TimeZone", "UTC"],
    ["DateStyle", "ISO"],
    ["bytea_output", "hex"],
    ["jit", "off"],
    ...(role === undefined ? [] : [["role", role] as [string, string]]),
  ];
  const calls = settings.map(([name, value]) => `set_config('${name}', '${value.replaceAll("'", "''")}', false)`);
  const columns = ["pg_backend_pid() AS pid", READ_ONLY, ...(readsHistory ? [HISTORY] : []), ...calls];
  return `SELECT ${columns.join(", ")}`;
}
