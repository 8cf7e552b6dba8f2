import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";

const A = 1;
const AAAA = 28;

/** A real name server whose answers a test sets, and a resolver that asks it. */
export class NameServer {
  /** IPv4 addresses by name. A name without addresses does not exist. */
  readonly names = new Map<string, readonly string[]>();
  readonly #socket = createSocket("udp4");

  async start(): Promise<Resolver> {
    this.#socket.on("message", (query, { port, address }) => {
      this.#socket.send(this.#answer(query), port, address);
    });
    this.#socket.bind(0, "127.0.0.1");
    await once(this.#socket, "listening");
    const resolver = new Resolver({ timeout: 1_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${this.#socket.address().port}`]);
    return resolver;
  }

  stop(): void {
    this.#socket.close();
  }

  /** The header, the question, and a record of ten bytes and the address for each address. */
  #answer(query: Buffer): Buffer {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] as number; length > 0; length = query[at] as number) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const type = query.readUInt16BE(at + 1);
    const question = query.subarray(12, at + 5);
    const addresses = this.names.get(labels.join(".").toLowerCase());
    const records = (type === A ? (addresses ?? []) : []).map((address) =>
      Buffer.from([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split(".").map(Number)]),
    );
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(addresses && (type === A || type === AAAA) ? 0x8180 : 0x8183, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    header.writeUInt32BE(0, 8);
    return Buffer.concat([header, question, ...records]);
  }
}
