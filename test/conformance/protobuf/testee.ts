// The program under test of protobuf's conformance suite: reads and writes JSON with the codec of REST.
import { fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { readJsonMessage } from "../../../src/codec/decode.ts";
import { Readers } from "../../../src/codec/json/reader.ts";
import { writerOf } from "../../../src/codec/json/writer.ts";
import { finish } from "../../../src/codec/steps.ts";
import { createUntyped, messageType, readDescriptors } from "../descriptors.ts";
import { readMessages, writeMessage } from "../framed-stdio.ts";

const PROTOBUF = 1;
const JSON_FORMAT = 2;
const IGNORE_UNKNOWN = 3;

type Request = Message & {
  readonly payload: { readonly case: string | undefined; readonly value: unknown };
  readonly requestedOutputFormat: number;
  readonly messageType: string;
  readonly testCategory: number;
};

const [descriptors = ""] = process.argv.slice(2);
const registry = readDescriptors(descriptors);
const strict = new Readers("refuse");
const lenient = new Readers("ignore");
const responseType = messageType(registry, "conformance.ConformanceResponse");

for await (const bytes of readMessages("little-endian")) {
  const request = fromBinary(messageType(registry, "conformance.ConformanceRequest"), bytes) as Request;
  const [name, value] = respond(request);
  const response = createUntyped(responseType, { result: { case: name, value } });
  await writeMessage(toBinary(responseType, response), "little-endian");
}

function respond(request: Request): [result: string, value: unknown] {
  const { payload, requestedOutputFormat: format } = request;
  // The first request of the suite is for a list of failures, which is in a file.
  if (request.messageType === "conformance.FailureSet") return ["protobufPayload", new Uint8Array()];
  const isJson = payload.case === "jsonPayload";
  if (!isJson && (payload.case !== "protobufPayload" || format !== JSON_FORMAT)) return ["skipped", "not JSON"];
  if (format !== PROTOBUF && format !== JSON_FORMAT) return ["skipped", "not JSON"];
  const desc = messageType(registry, request.messageType);
  let message: Message;
  try {
    message = isJson
      ? finish(
          readJsonMessage(
            (request.testCategory === IGNORE_UNKNOWN ? lenient : strict).of(desc),
            Buffer.from(payload.value as string),
          ),
        )
      : fromBinary(desc, payload.value as Uint8Array);
  } catch (error) {
    return ["parseError", String(error)];
  }
  try {
    return format === PROTOBUF ? ["protobufPayload", toBinary(desc, message)] : ["jsonPayload", writerOf(desc)(message)];
  } catch (error) {
    return ["serializeError", String(error)];
  }
}
