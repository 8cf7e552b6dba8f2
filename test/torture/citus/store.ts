import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { distributionOf } from "../../../src/database/cells/citus/distribution.ts";
import { migrate } from "../../../src/database/schema/migrate.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import { connectNodes, moveSchema, type Node, type Nodes, startNodes, workerPort } from "../../citus/cluster.ts";
import { createViews, killPostgres, type RunStore, SERVER_LOGIN } from "../database.ts";

export type CitusCell = { readonly name: string; readonly schema: string; readonly lanes: readonly Lane[] };

const CELLS: readonly CitusCell[] = [
  { name: "a", schema: "vx", lanes: lanesFrom(0, 511) },
  { name: "b", schema: "vx_b", lanes: lanesFrom(512, 1_023) },
];

const MOVE_TIMEOUT_MS = 60_000;

/** A coordinator and two workers with fsync on, and two cells, each of which begins on a worker of its own. */
export class CitusStore implements RunStore {
  readonly folder: string;
  readonly owners: readonly postgres.Sql[];
  readonly #nodes: Nodes;
  readonly #killed = new Set<Node>();

  private constructor(nodes: Nodes) {
    this.#nodes = nodes;
    this.folder = nodes.folder;
    this.owners = CELLS.map(({ schema }) => openOwner(nodes, `owned_${schema}, ${schema}`));
    writeFileSync(this.serverFile, JSON.stringify({ cells: CELLS.map((cell) => this.#entryOf(cell)) }));
  }

  static async start(): Promise<CitusStore> {
    const store = new CitusStore(await startNodes(3, { hasCitus: true }));
    try {
      await store.#create();
      return store;
    } catch (error) {
      await store.stop();
      throw error;
    }
  }

  get cells(): readonly CitusCell[] {
    return CELLS;
  }

  get coordinator(): Node {
    return this.#nodes.nodes[0] as Node;
  }

  get workers(): readonly Node[] {
    return this.#nodes.nodes.slice(1);
  }

  /** The cells.yaml of all servers. */
  get serverFile(): string {
    return join(this.folder, "cells.yaml");
  }

  /** The worker that has the schema of the cell, by the metadata of the coordinator. */
  async workerOf({ schema }: CitusCell): Promise<Node> {
    const current = await workerPort(this.#owner, schema);
    return this.workers.find(({ port }) => port === current) as Node;
  }

  /** Moves the cells to workers of their own, so that one that fails has one cell. */
  async separate(): Promise<void> {
    for (const [i, cell] of CELLS.entries()) await this.move(cell, this.workers[i] as Node);
  }

  /** Servers may use the schema meanwhile. */
  async move({ schema }: CitusCell, { port }: Node): Promise<void> {
    await moveSchema(this.#owner, schema, port);
  }

  kill(node: Node): void {
    this.#killed.add(node);
    killPostgres(node);
  }

  async revive(): Promise<void> {
    for (const node of this.#killed) {
      this.#killed.delete(node);
      await node.restart();
    }
  }

  async checkpoint(): Promise<void> {
    await this.#onEveryNode((owner) => owner`CHECKPOINT`);
  }

  logText(): string {
    return this.#nodes.nodes.map(({ logFile }) => readFileSync(logFile, "utf8")).join("\n");
  }

  async stop(): Promise<void> {
    await Promise.all(this.owners.map((owner) => owner.end({ timeout: 1 })));
    await this.revive();
    await this.#nodes.stop();
  }

  get #owner(): postgres.Sql {
    return this.owners[0] as postgres.Sql;
  }

  async #create(): Promise<void> {
    const { nodes } = this.#nodes;
    await connectNodes(
      this.#owner,
      nodes.map(({ port }) => port),
    );
    for (const { schema, lanes } of CELLS) {
      await migrate({ kind: "url", url: this.coordinator.url }, { schema, lanes, distribution: distributionOf("citus") });
      await createViews(this.#owner, schema, `owned_${schema}`);
    }
    await this.separate();
    await this.#owner.unsafe(`CREATE ROLE ${SERVER_LOGIN} LOGIN PASSWORD '${SERVER_LOGIN}'`);
    await this.#owner.unsafe(`GRANT vx_app TO ${SERVER_LOGIN}`);
  }

  async #onEveryNode(run: (owner: postgres.Sql) => Promise<unknown>): Promise<void> {
    for (const { url } of this.#nodes.nodes) {
      const owner = postgres(url, { max: 1 });
      await run(owner);
      await owner.end();
    }
  }

  #entryOf({ name, schema, lanes }: CitusCell) {
    const url = `postgres://${SERVER_LOGIN}:${SERVER_LOGIN}@127.0.0.1:${this.coordinator.port}/postgres`;
    return { name, schema, database_url: url, engine: "citus", lanes: `${lanes[0]}-${lanes.at(-1)}` };
  }
}

function openOwner({ nodes }: Nodes, searchPath: string): postgres.Sql {
  return postgres(nodes[0]?.url as string, {
    max: 3,
    connect_timeout: 5,
    backoff: () => 0.2,
    fetch_types: false,
    onnotice: () => undefined,
    types: { bigint: postgres.BigInt },
    // Otherwise a move that hangs would stop the run.
    connection: { search_path: searchPath, statement_timeout: MOVE_TIMEOUT_MS },
  });
}

function lanesFrom(first: Lane, last: Lane): Lane[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
