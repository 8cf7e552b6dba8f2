import { type DescMessage, type DescMethod, type Message, type Registry, toBinary, toJsonString } from "@bufbuild/protobuf";
import { readBinary } from "../../codec/binary/read-message.ts";
import { readJsonMessage } from "../../codec/decode.ts";
import type { Reader } from "../../codec/json/reader.ts";
import { binaryParts, type Parts, protoJsonParts } from "../../codec/message-parts.ts";
import type { Steps } from "../../codec/steps.ts";

export type MethodMessages = {
  readonly desc: DescMethod;
  readonly input: DescMessage;
  readonly readJson: Reader;
  /** For the types of google.protobuf.Any. */
  readonly jsonOptions: { readonly registry?: Registry };
};

/** How the messages of an RPC are written: each protocol of RPCs can have every encoding. */
export type Encoding = {
  /** As in the content types. */
  readonly name: "proto" | "json";
  /** Whether a decoded message can refer to its bytes, which then must not be freed. */
  readonly keepsBytes: boolean;
  readonly empty: Buffer;
  /** Decodes a request within the limits of the .proto. */
  read(method: Pick<MethodMessages, "input" | "readJson">, bytes: Buffer): Steps<Message>;
  write(method: MethodMessages, message: Message): Uint8Array;
  /** The same as `write`, piece by piece. */
  parts(method: MethodMessages, message: Message): Parts;
};

export const PROTO: Encoding = {
  name: "proto",
  keepsBytes: true,
  empty: Buffer.alloc(0),
  read: ({ input }, bytes) => readBinary(input, bytes),
  write: ({ desc }, message) => toBinary(desc.output, message),
  parts: ({ desc }, message) => binaryParts(desc.output, message),
};

export const JSON_ENCODING: Encoding = {
  name: "json",
  keepsBytes: false,
  empty: Buffer.from("{}"),
  read: ({ readJson }, bytes) => readJsonMessage(readJson, bytes),
  write: ({ desc, jsonOptions }, message) => Buffer.from(toJsonString(desc.output, message, jsonOptions)),
  parts: ({ desc, jsonOptions }, message) => protoJsonParts(desc.output, message, jsonOptions),
};
