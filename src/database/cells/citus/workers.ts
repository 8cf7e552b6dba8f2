import { Connection, Session, type SessionOptions } from "../../driver/connection.ts";
import { type DatabaseAddress, type Endpoint, endpointAt } from "../../driver/endpoints.ts";
import { Hosts } from "../../driver/hosts.ts";

/** Every node of the cluster has this metadata. All tables of a distributed schema are on one node. */
const PLACEMENT = `
  SELECT n.nodename AS host, n.nodeport AS port
  FROM pg_dist_schema s
  JOIN pg_dist_partition t ON t.colocationid = s.colocationid
  JOIN pg_dist_shard d ON d.logicalrelid = t.logicalrelid
  JOIN pg_dist_placement p ON p.shardid = d.shardid
  JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
  WHERE s.schemaid = $1::regnamespace LIMIT 1`;

const OPTIONS: SessionOptions = { name: "vx placement", statementTimeoutMs: 2_000 };

/**
 * The worker of a Citus cluster that has the schema of a cell. Sessions go to it directly: a function called at another node
 * would send each of its statements over the network. All pools of a process share it, and follow the schema when it moves.
 */
export class CitusWorkers {
  readonly #address: DatabaseAddress;
  readonly #schema: string;
  /** To the coordinator or, while it cannot be reached, to the worker in use. */
  readonly #catalog: Connection;
  readonly #sessions = new Set<Session>();
  #worker: Endpoint | undefined;

  constructor(address: DatabaseAddress, schema: string) {
    this.#address = address;
    this.#schema = schema;
    const coordinator = new Hosts(address);
    const open = async (options: SessionOptions) => {
      try {
        return await coordinator.open(options);
      } catch (error) {
        if (!this.#worker) throw error;
        return await Session.open(this.#worker, options);
      }
    };
    this.#catalog = new Connection({ open }, OPTIONS);
  }

  async open(options: SessionOptions): Promise<Session> {
    const worker = this.#worker ?? (await this.#find());
    const session = await Session.open(worker, options);
    for (const other of this.#sessions) if (!other.isOpen) this.#sessions.delete(other);
    this.#sessions.add(session);
    return session;
  }

  /** Follows the schema. Sessions at the worker that had it end after their current statement. */
  async check(): Promise<void> {
    try {
      const { name } = await this.#find();
      for (const session of this.#sessions) if (session.endpoint.name !== name) void session.close();
    } catch {
      // Calls go on at the worker that is in use: Citus sends them to the one that has the schema.
    }
  }

  async close(): Promise<void> {
    await this.#catalog.close();
  }

  async #find(): Promise<Endpoint> {
    const [place] = (await this.#catalog.query(PLACEMENT, [this.#schema])) as { readonly host: string; readonly port: number }[];
    if (!place) throw new Error(`the schema ${this.#schema} is on no worker of the Citus cluster`);
    const found = endpointAt(this.#address, place.host, place.port);
    if (this.#worker?.name !== found.name) this.#worker = found;
    return found;
  }
}
