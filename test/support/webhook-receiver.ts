import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

/** A delivery as the receiver got it. */
export type Received = { readonly path: string; readonly headers: IncomingHttpHeaders; readonly text: string };

export type WebhookEvent = {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly account_id: string;
  readonly seq: number;
  readonly data: Record<string, unknown>;
};

type Respond = (response: ServerResponse, received: Received) => void;

/** An endpoint for webhooks on a real port. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  /** Accepts deliveries by default. */
  respond: Respond = (response) => response.writeHead(204).end();
  readonly #server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { url: path = "", headers } = request;
    const received = { path, headers, text: Buffer.concat(chunks).toString("utf8") };
    this.received.push(received);
    for (const wake of this.#waiting.splice(0)) wake();
    this.respond(response, received);
  });
  readonly #waiting: (() => void)[] = [];

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path = "/"): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Resolves when there are so many deliveries of the path. */
  async until(count: number, path = "/"): Promise<Received[]> {
    for (;;) {
      const found = this.received.filter((received) => received.path === path);
      if (found.length >= count) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export function eventOf({ text }: Received): WebhookEvent {
  return JSON.parse(text);
}

/** The event, after the official library verified the signature. */
export function verified(secret: string, { headers, text }: Received): WebhookEvent {
  return new Webhook(secret).verify(text, headers as Record<string, string>) as WebhookEvent;
}
