import { hasMoreCharacters } from "../domain/characters.ts";
import { MAX_MESSAGE_CHARACTERS } from "../domain/conversation.ts";
import { DomainError } from "../domain/errors.ts";
import { type Model, TASK_KINDS } from "../domain/model.ts";
import type { Task } from "../domain/prompt.ts";
import type { GenerationRequest } from "./generation-request.ts";

const MAX_INPUTS = 2_048;
/** The vectors are stored with the other answers for a retry. */
const MAX_KEPT_INPUTS = 256;
const MAX_VALUES = 4_194_304;

/** Refuses a task that the model cannot do, with the name of an API that it can be used with. */
export function checkTask({ id, capabilities, upstreams }: Model, task: Task | undefined): void {
  const createsVectors = capabilities.includes("embeddings");
  if (task?.kind === "embed") {
    if (createsVectors) return;
    throw refusal(`"${id}" does not have the capability "embeddings"`);
  }
  if (createsVectors) throw refusal(`"${id}" only creates embeddings: call /v1/embeddings or /v1/embed`);
  if (task && !upstreams.every(({ kind }) => TASK_KINDS.includes(kind))) {
    throw refusal(`"${id}" has an upstream without completions: call /v1/chat/completions`);
  }
}

/** The texts are the messages of the request. */
export function checkEmbedding(
  { messages, fields }: GenerationRequest,
  { dimensions = 1 }: Extract<Task, { kind: "embed" }>,
): void {
  if (messages.length === 0) throw DomainError.ofField("input", "must not be empty");
  if (messages.length > MAX_INPUTS)
    throw DomainError.ofField("input", `must have at most ${MAX_INPUTS} texts`);
  for (const [i, { content }] of messages.entries()) {
    const field = fields?.[i] ?? `input[${i}]`;
    if (typeof content !== "string" || content === "") throw DomainError.ofField(field, "must not be empty");
    if (hasMoreCharacters([content], MAX_MESSAGE_CHARACTERS)) {
      throw DomainError.ofField(field, `must be at most ${MAX_MESSAGE_CHARACTERS} characters`);
    }
  }
  if (messages.length * dimensions > MAX_VALUES) {
    throw DomainError.ofField("dimensions", `times the number of texts must be at most ${MAX_VALUES}`);
  }
}

/** An answer with many vectors is too large to be stored for a retry. */
export function checkKept({ messages, options }: GenerationRequest): void {
  if (options.task?.kind !== "embed" || messages.length <= MAX_KEPT_INPUTS) return;
  throw DomainError.ofField("input", `must have at most ${MAX_KEPT_INPUTS} texts with an idempotency key`);
}

function refusal(description: string): DomainError {
  return DomainError.ofField("model", description);
}
