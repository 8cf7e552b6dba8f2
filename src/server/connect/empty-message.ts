import { envelope } from "../rpc/envelope.ts";
import type { RpcForm } from "../rpc/rpc-form.ts";

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
