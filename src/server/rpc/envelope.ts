/** One byte of flags, four of length. */
export const HEAD_BYTES = 5;

/** Frames a message for Connect streams, gRPC and gRPC-Web. */
export function envelope(flags: number, data: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(HEAD_BYTES + data.length);
  framed[0] = flags;
  framed.writeUInt32BE(data.length, 1);
  framed.set(data, HEAD_BYTES);
  return framed;
}
