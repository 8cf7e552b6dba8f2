import { once } from "node:events";

export type ByteOrder = "big-endian" | "little-endian";

/** The messages on stdin, each prefixed by its length in four bytes. */
export async function* readMessages(order: ByteOrder): AsyncGenerator<Buffer> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    pending = Buffer.concat([pending, chunk]);
    for (let end = endOfFirst(pending, order); end <= pending.length; end = endOfFirst(pending, order)) {
      yield pending.subarray(4, end);
      pending = pending.subarray(end);
    }
  }
}

export async function writeMessage(message: Uint8Array, order: ByteOrder): Promise<void> {
  const head = Buffer.alloc(4);
  if (order === "little-endian") head.writeUInt32LE(message.length);
  else head.writeUInt32BE(message.length);
  if (!process.stdout.write(Buffer.concat([head, message]))) await once(process.stdout, "drain");
}

function endOfFirst(bytes: Buffer, order: ByteOrder): number {
  if (bytes.length < 4) return Number.POSITIVE_INFINITY;
  return 4 + (order === "little-endian" ? bytes.readUInt32LE() : bytes.readUInt32BE());
}
