import { DomainError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { Cells } from "./cells.ts";
import { Connection, type Parameter, Session, type SessionOptions } from "./connection.ts";
import { type DatabaseAddress, type Endpoint, endpointsOf } from "./endpoints.ts";
import { Hosts } from "./hosts.ts";
import { fromDatabaseError, isServerAbsent, SchemaMoved } from "./store-error.ts";

export type DatabaseOptions = SessionOptions & {
  readonly connections: number;
  /** The schema whose functions are called; "vx" if undefined. */
  readonly schema?: string;
  /** Maximum number of running and waiting statements; further ones are refused as overloaded. */
  readonly maxStatements: number;
  /** Timeout for a statement that waits for a connection; then it is refused as overloaded. */
  readonly maxWaitMs: number;
};

/** The servers of a cluster, one of which has the schema. */
interface ClusterServers {
  open(options: SessionOptions): Promise<Session>;
  /** Follows the schema when it moves. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** All pools of one database or cell share them. */
export type Servers = Hosts | ClusterServers;

/** More moves during one statement mean that the metadata of Citus is wrong. */
const MAX_MOVES_FOLLOWED = 3;

type Waiting = {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: DomainError) => void;
};

/**
 * A connection pool that only calls functions of one schema: of a cell, or of the only database. Each connection runs
 * one statement at a time, so the statement timeout starts when PostgreSQL receives the statement, and a slow statement
 * delays no other.
 */
export class Database implements Cells {
  readonly all: readonly Database[] = [this];
  readonly #options: DatabaseOptions;
  readonly #schema: string;
  readonly #connections: readonly Connection[];
  readonly #watch: PrimaryWatch | ClusterServers;
  /** Last in, first out: connections that are not needed are never opened. */
  readonly #idle: Connection[];
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>();
  #closed = false;
  /** Connections that keep locks for work elsewhere. */
  #during = 0;

  constructor(servers: DatabaseAddress | Servers, options: DatabaseOptions) {
    const source = "open" in servers ? servers : new Hosts(servers);
    this.#options = options;
    this.#schema = options.schema ?? "vx";
    this.#connections = Array.from({ length: options.connections }, () => new Connection(source, options));
    this.#watch = source instanceof Hosts ? new PrimaryWatch(source, options) : source;
    this.#idle = [...this.#connections];
  }

  /** Number of running and waiting statements. */
  get running(): number {
    return this.connections - this.#idle.length + this.#waiting.size;
  }

  get connections(): number {
    return this.#connections.length;
  }

  get home(): Database {
    return this;
  }

  /** The only cell has all lanes. */
  at(_lane: Lane): Database {
    return this;
  }

  route<Result>(_lane: Lane, send: (cell: number) => Promise<Result>): Promise<Result> {
    return send(0);
  }

  owns(_cell: number, _lane: Lane): boolean {
    return true;
  }

  nameOf(_cell: number): string {
    return "";
  }

  /** There is no other cell. */
  async share(): Promise<void> {}

  /** Calls <schema>.<name> with the parameters and returns its rows. Follows a schema that moved, see vx.require_schema. */
  async call<Row>(name: string, ...parameters: Parameter[]): Promise<Row[]> {
    const places = parameters.map((_, i) => `$${i + 1}`).join(",");
    const text = `SELECT * FROM ${this.#schema}.${name}(${places})`;
    for (let moves = 0; ; moves++) {
      try {
        return (await this.#withConnection((connection) => connection.query(text, parameters))) as Row[];
      } catch (error) {
        if (!(error instanceof SchemaMoved) || moves === MAX_MOVES_FOLLOWED) throw error;
        await this.#watch.check();
      }
    }
  }

  /** At most half of the connections wait for such work. */
  async during<Result>(name: string, parameter: string, work: () => Promise<Result>): Promise<Result> {
    if (2 * this.#during >= this.connections) throw new DomainError("overloaded");
    this.#during++;
    const text = `SELECT * FROM ${this.#schema}.${name}($1)`;
    try {
      const outcome = await this.#withConnection((connection) => connection.during(text, parameter, work));
      if (outcome.status === "rejected") throw outcome.reason;
      return outcome.value;
    } finally {
      this.#during--;
    }
  }

  /** Throws unless a new transaction can write. */
  async requireWritable(): Promise<void> {
    await this.#withConnection((connection) => connection.requireWritable());
  }

  async findNewerPrimary(): Promise<void> {
    await this.#watch.check();
  }

  async #withConnection<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const connection = this.#idle.pop() ?? (await this.#waitForConnection());
    try {
      return await work(connection);
    } catch (error) {
      const known = fromDatabaseError(error);
      // The waiting calls would get the same error, each after its own timeout.
      if (isServerAbsent(error)) this.#rejectWaiting(known);
      throw known;
    } finally {
      this.#release(connection);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#rejectWaiting(new DomainError("unavailable"));
    await Promise.all([...this.#connections, this.#watch].map((part) => part.close()));
  }

  #waitForConnection(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new DomainError("unavailable"));
    if (this.running >= this.#options.maxStatements) return Promise.reject(new DomainError("overloaded"));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => waiting.reject(new DomainError("overloaded")), this.#options.maxWaitMs);
      const stopWaiting = () => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
      };
      const waiting: Waiting = {
        resolve: (connection) => {
          stopWaiting();
          resolve(connection);
        },
        reject: (error) => {
          stopWaiting();
          reject(error);
        },
      };
      this.#waiting.add(waiting);
    });
  }

  #release(connection: Connection): void {
    const [next] = this.#waiting;
    if (next) next.resolve(connection);
    else this.#idle.push(connection);
  }

  #rejectWaiting(error: DomainError): void {
    for (const waiting of [...this.#waiting]) waiting.reject(error);
  }
}

/**
 * Looks for a primary that was promoted while the old one still responds, or while it is paused. It keeps one
 * connection to each server that is not in use.
 */
class PrimaryWatch {
  readonly #hosts: Hosts;
  readonly #options: SessionOptions;
  readonly #connections = new Map<Endpoint, Connection>();
  #isChecking = false;

  constructor(hosts: Hosts, options: SessionOptions) {
    this.#hosts = hosts;
    this.#options = options;
  }

  /** Does nothing while an earlier check waits for a server that does not respond. */
  async check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    await Promise.all(this.#hosts.others.map((endpoint) => this.#check(endpoint)));
    this.#isChecking = false;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }

  async #check(endpoint: Endpoint): Promise<void> {
    try {
      const history = await this.#connectionTo(endpoint).readHistory();
      if (history) this.#hosts.useNewer(endpoint, history);
    } catch {
      // The server is down, which only matters to the connections in use.
    }
  }

  #connectionTo(endpoint: Endpoint): Connection {
    let connection = this.#connections.get(endpoint);
    if (!connection) {
      connection = new Connection(
        { open: (options) => Session.connect(endpoint, options) },
        { ...this.#options, readsHistory: true },
      );
      this.#connections.set(endpoint, connection);
    }
    return connection;
  }
}

const REACH_TIMEOUT_MS = 2_000;

/** Rejects unless a server of the address has the schema, for the role. It may be a standby. */
export async function reachCell(address: DatabaseAddress, schema: string, role: string): Promise<void> {
  await Promise.any(
    endpointsOf(address).map(async (endpoint) => {
      const options = { statementTimeoutMs: REACH_TIMEOUT_MS, name: "vx waiting cell", role };
      const session = await Session.connect(endpoint, options);
      try {
        await session.sql.unsafe(`SELECT name FROM ${schema}.cell_state()`);
      } finally {
        await session.close();
      }
    }),
  );
}
