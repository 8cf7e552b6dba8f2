/** One byte of flags, four of length. */
export const HEAD_BYTES = 5;

/** Frames a message for Connect streams, gRPC and gRPC-Web. */
export function envelope(flags: number, data: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = flags;
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}
