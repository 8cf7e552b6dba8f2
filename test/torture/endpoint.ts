import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Random } from "../fuzz/random.ts";

export type Arrival = {
  /** The account that the webhook belongs to, or "all". */
  readonly of: string;
  readonly eventId: string;
  readonly accountId: string;
  readonly seq: number;
};

/** An endpoint of webhooks that refuses deliveries, answers late, and closes connections, until it is calm. */
export class TortureEndpoint {
  readonly arrivals: Arrival[] = [];
  /** Webhook and event of accepted deliveries. */
  readonly accepted = new Set<string>();
  isCalm = false;
  readonly #random = new Random(1);
  readonly #server = createServer(async (request, response) => {
    response.on("error", () => undefined);
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const of = (request.url ?? "").slice(1);
    const { id, account_id, seq } = JSON.parse(body) as { id: string; account_id: string; seq: number };
    this.arrivals.push({ of, eventId: id, accountId: account_id, seq });
    this.#answer(response, `${of} ${id}`);
  });

  static async start(): Promise<TortureEndpoint> {
    const endpoint = new TortureEndpoint();
    endpoint.#server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => endpoint.#server.listen(0, "127.0.0.1", resolve));
    return endpoint;
  }

  url(of: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${of}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(response: ServerResponse, delivery: string): void {
    const fate = this.isCalm ? 1 : this.#random.next();
    if (fate < 0.1) response.destroy();
    else if (fate < 0.2) response.writeHead(500).end("not now");
    else {
      // The answer can be lost, so the server may send the event again.
      this.accepted.add(delivery);
      if (fate < 0.3) setTimeout(() => response.writeHead(204).end(), 1_500);
      else response.writeHead(204).end();
    }
  }
}
