import type { Socket } from "node:net";
import postgres from "postgres";
import { type DatabaseAddress, type Endpoint, endpointsOf } from "./endpoints.ts";

export type Sql = postgres.Sql<{ bigint: bigint }>;

export type SessionOptions = {
  /** PostgreSQL cancels a statement after this time. */
  readonly statementTimeoutMs: number;
  /** Shown in pg_stat_activity. */
  readonly name: string;
  /** The role to assume; undefined for the login's own role. */
  readonly role?: string;
};

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
  #failure = new Error("the server closed the connection while it was opened");
  #backend = { pid: 0, isPooled: false };

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

  static async open(endpoint: Endpoint, options: SessionOptions): Promise<Session> {
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

  /** The id of the PostgreSQL process that currently serves this session. */
  async backendPid(): Promise<number> {
    const [row] = await this.sql.unsafe<{ pid: number }[]>("SELECT pg_backend_pid() AS pid");
    return row?.pid ?? 0;
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
      this.#failure = new Error(`${this.#endpoint.name} did not answer within ${OPEN_TIMEOUT_MS} ms`);
      this.#socket?.destroy();
    }, OPEN_TIMEOUT_MS);
    try {
      const rows = await this.sql.unsafe<{ pid: number; read_only: string }[]>(setupText(options));
      const [row] = rows;
      if (row?.read_only !== "off") throw new ReadOnlyError(this.#endpoint.name);
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

function setupText({ statementTimeoutMs, role }: SessionOptions): string {
  const settings: [string, string][] = [
    ["statement_timeout", String(statementTimeoutMs)],
    ["idle_in_transaction_session_timeout", String(statementTimeoutMs)],
    ["TimeZone", "UTC"],
    ["jit", "off"],
    ...(role === undefined ? [] : [["role", role] as [string, string]]),
  ];
  const calls = settings.map(
    ([name, value]) => `set_config('${name}', '${value.replaceAll("'", "''")}', false)`,
  );
  return `SELECT pg_backend_pid() AS pid, current_setting('transaction_read_only') AS read_only, ${calls.join(", ")}`;
}

/** Opens sessions on the first server of an address that can write, starting with the last one used. */
export class SessionOpener {
  readonly #endpoints: readonly Endpoint[];
  readonly #options: SessionOptions;
  #preferred = 0;

  constructor(address: DatabaseAddress, options: SessionOptions) {
    this.#endpoints = endpointsOf(address);
    this.#options = options;
  }

  async open(): Promise<Session> {
    const failures: unknown[] = [];
    const count = this.#endpoints.length;
    for (let i = 0; i < count; i++) {
      const index = (this.#preferred + i) % count;
      try {
        const session = await Session.open(this.#endpoints[index] as Endpoint, this.#options);
        this.#preferred = index;
        return session;
      } catch (error) {
        failures.push(error);
      }
    }
    throw failures.length === 1 ? failures[0] : combine(failures);
  }
}

/**
 * One error for all servers of an address. Its code is read-only if any server is read-only, because that
 * server responded.
 */
function combine(failures: readonly unknown[]): Error {
  const messages = failures.map((failure) => (failure as Error).message);
  const readOnly = failures.find((failure) => failure instanceof ReadOnlyError);
  const { code } = (readOnly ?? failures.at(-1)) as { code?: string };
  return Object.assign(new Error(messages.join("; ")), { code, failures });
}
