import type { Socket } from "node:net";
import postgres from "postgres";
import type { Endpoint } from "./endpoints.ts";

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
  #state: State = { isReadOnly: true, history: undefined };

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

  /** The id of the PostgreSQL process that currently serves this session. */
  async backendPid(): Promise<number> {
    const [row] = await this.sql.unsafe<{ pid: number }[]>("SELECT pg_backend_pid() AS pid");
    return row?.pid ?? 0;
  }

  /** The current history; undefined if the server cannot write. */
  async readHistory(): Promise<History | undefined> {
    const [row] = await this.sql.unsafe<StateRow[]>(`SELECT ${READ_ONLY}, ${HISTORY}`);
    return row && stateOf(row).history;
  }

  /** Throws unless a new transaction can write. */
  async requireWritable(): Promise<void> {
    const [row] = await this.sql.unsafe<{ state: string }[]>(
      "SELECT current_setting('transaction_read_only') AS state",
    );
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
      const rows = await this.sql.unsafe<(StateRow & { pid: number })[]>(setupText(options));
      const [row] = rows;
      if (!row) throw this.#failure;
      this.#state = stateOf(row);
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

type State = { readonly isReadOnly: boolean; readonly history: History | undefined };
type StateRow = { readonly read_only: string; readonly system?: string; readonly timeline?: number };

const READ_ONLY = "current_setting('transaction_read_only') AS read_only";
/** The position in the write-ahead log names the timeline; a standby has no position and refuses the function. */
const HISTORY = `(SELECT system_identifier::text FROM pg_control_system()) AS system,
  CASE WHEN pg_is_in_recovery() THEN 0
       ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int END AS timeline`;

function stateOf({ read_only, system, timeline }: StateRow): State {
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
  const calls = settings.map(
    ([name, value]) => `set_config('${name}', '${value.replaceAll("'", "''")}', false)`,
  );
  const columns = ["pg_backend_pid() AS pid", READ_ONLY, ...(readsHistory ? [HISTORY] : []), ...calls];
  return `SELECT ${columns.join(", ")}`;
}
