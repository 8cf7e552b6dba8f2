import type { Message } from "@bufbuild/protobuf";
import type { BodyBudget } from "./body-budget.ts";
import { JsonScanner } from "./json/json-scanner.ts";
import type { Reader } from "./json/reader.ts";
import { finishInTurns, type Steps } from "./steps.ts";

/** The first part of a smaller body is decoded at once: the event loop is blocked only briefly. */
export const LARGE_BYTES = 262_144;

/**
 * Decodes small bodies at once; large ones, and small ones with many values, one at a time, in parts, so that
 * other calls run in between.
 */
export function decode<Result>(
  bytes: Buffer,
  budget: BodyBudget,
  steps: Steps<Result>,
): Result | Promise<Result> {
  if (bytes.length < LARGE_BYTES) {
    const first = steps.next();
    if (first.done) return first.value;
  }
  return budget.inTurn(() => finishInTurns(steps));
}

/** Reads the whole body as one message. */
export function* readJsonMessage(read: Reader, bytes: Buffer): Steps<Message> {
  const scanner = new JsonScanner(bytes);
  const message = yield* read(scanner, "");
  scanner.end();
  return message;
}
