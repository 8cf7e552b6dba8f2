import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { FakeCall } from "./fake-upstream.ts";
import type { Reply, Wire } from "./wire.ts";

/** One call that a behaviour handles. */
export class Turn {
  readonly wire: Wire;
  readonly reply: Reply;
  readonly call: FakeCall;
  readonly response: ServerResponse;
  readonly #changed: () => void;

  constructor(wire: Wire, reply: Reply, call: FakeCall, response: ServerResponse, changed: () => void) {
    this.wire = wire;
    this.reply = reply;
    this.call = call;
    this.response = response;
    this.#changed = changed;
  }

  /** Sends the headers of a successful response. */
  head(headers: OutgoingHttpHeaders = {}): void {
    this.response.writeHead(200, { "content-type": this.wire.contentType, ...headers });
    this.response.flushHeaders();
  }

  /** Records a piece and returns its encoding. */
  make(piece: string): string {
    this.call.pieces++;
    this.#changed();
    return this.wire.piece(piece);
  }

  /** The encoding of a whole reply. */
  whole(reply: Reply = this.reply): string {
    return this.wire.begin(reply) + reply.pieces.map((piece) => this.make(piece)).join("") + this.wire.end(reply);
  }

  /** The encoding of a reply up to this many pieces. */
  beginning(pieces: number): string {
    return (
      this.wire.begin(this.reply) +
      this.reply.pieces
        .slice(0, pieces)
        .map((piece) => this.make(piece))
        .join("")
    );
  }

  /** Sends data and waits until it is written. Returns false if the client has disconnected. */
  async send(data: string | Buffer): Promise<boolean> {
    if (this.response.destroyed) return false;
    await new Promise<void>((resolve) => {
      this.response.once("close", resolve);
      this.response.write(data, () => {
        this.response.removeListener("close", resolve);
        resolve();
      });
    });
    return !this.response.destroyed;
  }
}
