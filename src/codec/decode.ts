import type { Message } from "@bufbuild/protobuf";
import type { BodyShare } from "./body-budget.ts";
import { JsonScanner } from "./json/json-scanner.ts";
import type { Reader } from "./json/reader.ts";
import { finishInTurns, type Steps } from "./steps.ts";
import { weighMessage } from "./weigh-message.ts";

/** The first part of a smaller body is decoded at once: the event loop is blocked only briefly. */
export const LARGE_BYTES = 262_144;

/**
 * Decodes small bodies at once; large ones, and small ones with many values, one at a time, in parts, so that
 * other calls run in between. From then on the share holds the memory of the message instead of the body.
 */
export function decode(bytes: Buffer, share: BodyShare, steps: Steps<Message>): Message | Promise<Message> {
  const weighed = decodeAndWeigh(bytes, share, steps);
  if (bytes.length < LARGE_BYTES) {
    const first = weighed.next();
    if (first.done) return first.value;
  }
  return share.inTurn(() => finishInTurns(weighed));
}

function* decodeAndWeigh(bytes: Buffer, share: BodyShare, steps: Steps<Message>): Steps<Message> {
  const message = yield* steps;
  share.resize(yield* weighMessage(message, bytes.length));
  return message;
}

/** Reads the whole body as one message. */
export function* readJsonMessage(read: Reader, bytes: Buffer): Steps<Message> {
  const scanner = new JsonScanner(bytes);
  const message = yield* read(scanner, "");
  scanner.end();
  return message;
}
