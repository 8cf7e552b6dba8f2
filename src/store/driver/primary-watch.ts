import { Connection } from "./connection.ts";
import type { Endpoint } from "./endpoints.ts";
import type { Hosts } from "./hosts.ts";
import { Session, type SessionOptions } from "./session.ts";

/**
 * Looks for a primary that was promoted while the old one still responds, or while it is paused. It keeps one
 * connection to each server that is not in use.
 */
export class PrimaryWatch {
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
