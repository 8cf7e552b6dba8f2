import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { FakeCall } from "./fake-upstream.ts";
import type { Reply, Wire } from "./wire.ts";

/** One call, in the hands of a behaviour. */
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

  /** The head of a good answer. */
  head(headers: OutgoingHttpHeaders = {}): void {
    this.response.writeHead(200, { "content-type": this.wire.contentType, ...headers });
    this.response.flushHeaders();
  }

  /** Notes that a piece was made, and gives what goes over the wire for it. */
  make(piece: string): string {
    this.call.pieces++;
    this.#changed();
    return this.wire.piece(piece);
  }

  /** Everything that goes over the wire for a reply. */
  whole(reply: Reply = this.reply): string {
    return (
      this.wire.begin(reply) + reply.pieces.map((piece) => this.make(piece)).join("") + this.wire.end(reply)
    );
  }

  /** The beginning of the reply with so many pieces. */
  beginning(pieces: number): string {
    return (
      this.wire.begin(this.reply) +
      this.reply.pieces
        .slice(0, pieces)
        .map((piece) => this.make(piece))
        .join("")
    );
  }

  /** Sends and waits until it has left. False when the caller has gone. */
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
