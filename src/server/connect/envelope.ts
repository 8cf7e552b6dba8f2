/** One byte of flags, four of length. */
export const HEAD_BYTES = 5;

/** A message as the streams of Connect and all of gRPC and gRPC-Web frame it. */
export function envelope(flags: number, data: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = flags;
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}
