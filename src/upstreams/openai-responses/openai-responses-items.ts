import type { ContentPart, PromptMessage, Reasoning, ToolCall } from "../../domain/prompt.ts";
import { urlOf } from "../http/image-url.ts";
import { splitItemId } from "../item-id.ts";

/** The input items of a message. */
export function itemsOf(message: PromptMessage): object[] {
  const { role, content, toolCalls, reasoning, toolCallId } = message;
  if (toolCallId !== undefined) {
    return [{ type: "function_call_output", call_id: toolCallId, output: contentOf(content) }];
  }
  if (role !== "assistant") return [{ role, content: contentOf(content) }];
  const text = typeof content === "string" ? content : content.map(textOf).join("");
  const items: object[] = (reasoning ?? []).filter(isOwnReasoning).map(reasoningItem);
  if (text !== "" || (!toolCalls && !reasoning)) items.push({ role, content: text });
  return toolCalls ? [...items, ...toolCalls.map(callItem)] : items;
}

/** Whether the API can decrypt it: it refuses reasoning of other servers. */
function isOwnReasoning({ encrypted }: Reasoning): boolean {
  return Boolean(encrypted);
}

function reasoningItem({ text, encrypted: opaque = "" }: Reasoning): object {
  const { id, encrypted } = splitItemId(opaque);
  return {
    type: "reasoning",
    id,
    summary: text === "" ? [] : [{ type: "summary_text", text }],
    encrypted_content: encrypted,
  };
}

function callItem({ id, name, arguments: text }: ToolCall): object {
  return { type: "function_call", call_id: id, name, arguments: text };
}

function contentOf(content: PromptMessage["content"]): string | object[] {
  return typeof content === "string" ? content : content.map(partOf);
}

/** The API requires `detail`. */
function partOf(part: ContentPart): object {
  if (part.kind === "text") return { type: "input_text", text: part.text };
  return { type: "input_image", image_url: urlOf(part.image), detail: part.detail ?? "auto" };
}

function textOf(part: ContentPart): string {
  return part.kind === "text" ? part.text : "";
}
