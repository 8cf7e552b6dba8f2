import { writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { loginTo, urlTo } from "../support/embedded.ts";
import { type PrimaryServer, type Standby, startStandby } from "../support/standby.ts";
import { OWNER_PATH, type RunDatabase, SERVER_LOGIN, socketPathOf } from "./database.ts";
import { Line } from "./line.ts";
import type { RunServer } from "./server.ts";

/** A cell, or a standby that becomes one. */
export type ArenaCell = {
  readonly name: string;
  readonly server: PrimaryServer;
  readonly owner: postgres.Sql;
  /** The connection of each server. */
  readonly lines: readonly Line[];
  /** Starts its PostgreSQL again after it was killed. */
  restart(): Promise<void>;
};

/** The cells of an arena, and a cells.yaml for each server, whose connections go through proxies of its own. */
export class ArenaCells {
  readonly #folder: string;
  readonly #database: RunDatabase;
  /** The lines of each server's cells.yaml. */
  readonly #files: { readonly path: string; text: string }[] = [];
  readonly #standbys: Standby[] = [];
  readonly #firstLines: readonly Line[];
  readonly #added: ArenaCell[] = [];

  /** @param firstLines connections of the servers to the first cell */
  constructor(folder: string, database: RunDatabase, firstLines: readonly Line[]) {
    this.#folder = folder;
    this.#database = database;
    this.#firstLines = firstLines;
  }

  /** Every cell, the first one included. */
  get all(): readonly ArenaCell[] {
    const { primary: server, owner } = this.#database;
    const first = { name: "a", server, owner, lines: this.#firstLines };
    return [{ ...first, restart: () => this.#database.revive() }, ...this.#added];
  }

  /** Connections to the further cells and to a standby. */
  get owners(): readonly postgres.Sql[] {
    return this.#added.map(({ owner }) => owner);
  }

  /** Returns the path of the cells.yaml of a server whose first cell has this URL. */
  addServer(url: string): string {
    const path = join(this.#folder, `cells-${this.#files.length}.yaml`);
    this.#files.push({ path, text: `cells:\n${entryOf("a", url, "0-1023")}` });
    this.#writeFiles();
    return path;
  }

  /** The cells.yaml of the operator, who connects as the owner. */
  operatorFile(): string {
    const path = join(this.#folder, "cells-operator.yaml");
    const entries = this.all.map(({ name, server }) => entryOf(name, urlTo(server), ""));
    writeFileSync(path, `cells:\n${entries.join("")}`);
    return path;
  }

  /**
   * Attaches a standby to a cell and adds it to the files of all servers, which reload them. Without an address, it follows the
   * socket of the cell.
   */
  async attach(from: ArenaCell, servers: readonly RunServer[], address?: string): Promise<ArenaCell> {
    const standby = await startStandby(from.server, from.owner, address);
    this.#standbys.push(standby);
    const name = String.fromCharCode("a".charCodeAt(0) + this.#standbys.length);
    const lines: Line[] = [];
    for (const file of this.#files) {
      const line = await Line.start({ path: socketPathOf(standby) });
      lines.push(line);
      const url = `postgres://${SERVER_LOGIN}:${SERVER_LOGIN}@127.0.0.1:${line.port}/postgres`;
      file.text += entryOf(name, url, "");
    }
    this.#writeFiles();
    for (const server of servers) if (server.isRunning) server.signal("SIGHUP");
    const owner = postgres({
      ...loginTo(standby),
      max: 3,
      connect_timeout: 5,
      backoff: () => 0.2,
      fetch_types: false,
      onnotice: () => undefined,
      types: { bigint: postgres.BigInt },
      connection: { search_path: OWNER_PATH },
    });
    const cell = { name, server: standby, owner, lines, restart: () => standby.restart() };
    this.#added.push(cell);
    return cell;
  }

  async stop(): Promise<void> {
    for (const { owner } of this.#added) await owner.end({ timeout: 1 });
    for (const line of this.#added.flatMap(({ lines }) => lines)) await line.stop();
    for (const standby of this.#standbys) await standby.stop();
  }

  #writeFiles(): void {
    for (const { path, text } of this.#files) writeFileSync(path, text);
  }
}

function entryOf(name: string, url: string, lanes: string): string {
  return `  - name: ${name}\n    database_url: "${url}"\n    lanes: "${lanes}"\n`;
}
