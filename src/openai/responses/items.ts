import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ResponseItemSchema } from "../../../gen/vx/openai/v1/responses_pb.js";
import { withPrefix } from "../../domain/ids.ts";
import type { JsonObject, JsonValue } from "../../domain/json.ts";
import type { Output } from "../../domain/output.ts";
import { MAX_PARTS, type Reasoning, type ToolCall } from "../../domain/prompt.ts";
import { objectAt, optionalListAt, optionalTextAt, textAt } from "../../rules/untyped-members.ts";
import { valueOfJson } from "../../rules/untyped-values.ts";

export type Item = MessageInitShape<typeof ResponseItemSchema>;

type Status = "in_progress" | "completed" | "incomplete";

/** All ids of a response have the suffix of the generation's id. */
export function responseIdOf(generationId: string): string {
  return withPrefix("resp", generationId);
}

const PREFIXES = { message: "msg", call: "fc", reasoning: "rs" } as const;

/** `position` is that of the item among those of its kind; the first id has no number. */
export function itemIdOf(kind: keyof typeof PREFIXES, generationId: string, position: number): string {
  const id = withPrefix(PREFIXES[kind], generationId);
  return position === 0 ? id : `${id}_${position}`;
}

export function textPartOf(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

export function summaryPartOf(text: string) {
  return { type: "summary_text", text };
}

/** `text` is undefined while the item has no part. */
export function messageItem(id: string, text: string | undefined, status: Status): Item {
  const content = text === undefined ? [] : [textPartOf(text)];
  return { type: "message", id, status, role: "assistant", content: valueOfJson(content) };
}

export function callItem(id: string, call: ToolCall, status: Status): Item {
  return {
    type: "function_call",
    id,
    status,
    callId: call.id,
    name: call.name,
    arguments: call.arguments,
  };
}

export function reasoningItem(id: string, block: Reasoning, isEncryptedIncluded: boolean): Item {
  const summary = block.text === "" ? [] : [summaryPartOf(block.text)];
  const encryptedContent = isEncryptedIncluded ? encryptedContentOf(block) : undefined;
  return {
    type: "reasoning",
    id,
    summary: valueOfJson(summary),
    ...(encryptedContent !== undefined && { encryptedContent }),
  };
}

/** The items of a complete reply. An empty reply is an empty message. */
export function itemsOf(
  generationId: string,
  { text, reasoning, toolCalls }: Output,
  options: { readonly isIncomplete: boolean; readonly isEncryptedIncluded: boolean },
): readonly Item[] {
  const status = options.isIncomplete ? "incomplete" : "completed";
  const idOf = (kind: keyof typeof PREFIXES, position: number) => itemIdOf(kind, generationId, position);
  const items = reasoning.map((block, i) => reasoningItem(idOf("reasoning", i), block, options.isEncryptedIncluded));
  if (text !== "" || (reasoning.length === 0 && toolCalls.length === 0)) {
    items.push(messageItem(idOf("message", 0), text, toolCalls.length === 0 ? status : "completed"));
  }
  for (const [i, call] of toolCalls.entries()) {
    items.push(callItem(idOf("call", i), call, i === toolCalls.length - 1 ? status : "completed"));
  }
  return items;
}

/** Marks a signature in the only opaque field that the format has; its text is then in the summary. */
const SIGNATURE = "vx-signature:";

export function encryptedContentOf({ signature, encrypted }: Reasoning): string | undefined {
  return encrypted ?? (signature === undefined ? undefined : SIGNATURE + signature);
}

/** The block of a reasoning item; undefined if the item has only an id, because items are not stored. */
export function reasoningOf(item: JsonObject, field: string): Reasoning | undefined {
  const text = textsIn(item.summary, `${field}.summary`) || textsIn(item.content, `${field}.content`);
  const opaque = optionalTextAt(item.encrypted_content, `${field}.encrypted_content`);
  if (text === "" && opaque === undefined) return undefined;
  return opaque?.startsWith(SIGNATURE)
    ? { text, signature: opaque.slice(SIGNATURE.length), encrypted: undefined }
    : { text, signature: undefined, encrypted: opaque };
}

function textsIn(parts: JsonValue | undefined, field: string): string {
  return (optionalListAt(parts, field, MAX_PARTS) ?? [])
    .map((part, i) => textAt(objectAt(part, `${field}[${i}]`).text, `${field}[${i}].text`))
    .join("");
}
