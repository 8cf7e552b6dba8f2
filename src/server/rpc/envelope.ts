import type { RpcForm } from "./rpc-form.ts";

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

const JSON_MESSAGE = Buffer.from("{}");
const BINARY_MESSAGE = Buffer.alloc(0);
const EMPTY = { json: bodyOf(JSON_MESSAGE), binary: bodyOf(BINARY_MESSAGE) };
const ENVELOPED = { json: bodyOf(envelope(0, JSON_MESSAGE)), binary: bodyOf(envelope(0, BINARY_MESSAGE)) };

/** The body that Connect gets instead of a body that is already decoded. */
export function emptyMessage({ isEnveloped, isJson }: RpcForm): AsyncIterable<Uint8Array> {
  return (isEnveloped ? ENVELOPED : EMPTY)[isJson ? "json" : "binary"];
}

function bodyOf(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  return {
    async *[Symbol.asyncIterator]() {
      yield bytes;
    },
  };
}
