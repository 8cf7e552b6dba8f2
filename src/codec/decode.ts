import type { Message } from "@bufbuild/protobuf";
import type { BodyBudget } from "./body-budget.ts";
import { JsonScanner } from "./json/json-scanner.ts";
import type { Reader } from "./json/reader.ts";
import { finish, finishInTurns, type Steps } from "./steps.ts";

/** Smaller bodies are decoded at once: the event loop is blocked only briefly. */
export const LARGE_BYTES = 262_144;

/** Decodes small bodies at once; large ones one at a time, in parts, so that other calls run in between. */
export async function decode<Result>(
  bytes: Buffer,
  budget: BodyBudget,
  steps: Steps<Result>,
): Promise<Result> {
  return bytes.length < LARGE_BYTES ? finish(steps) : budget.inTurn(() => finishInTurns(steps));
}

/** Reads the whole body as one message. */
export function* readJsonMessage(read: Reader, bytes: Buffer): Steps<Message> {
  const scanner = new JsonScanner(bytes);
  const message = yield* read(scanner, "");
  scanner.end();
  return message;
}
