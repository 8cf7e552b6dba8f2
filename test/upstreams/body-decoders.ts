import type { RemoteKind } from "../../src/domain/model.ts";
import type { ContentPart, ImageData, Prompt, Reasoning } from "../../src/domain/prompt.ts";

/**
 * Reads a conversation from the body of a request, as a server would, and the same from the prompt: the smallest parts
 * in their order, each with its role. Texts that follow each other are one part, because some formats join them.
 */

export type Atom = readonly [role: string, kind: string, ...values: unknown[]];

// biome-ignore lint/suspicious/noExplicitAny: the schemas check the bodies before
type Json = any;

export const DECODERS: Readonly<Record<RemoteKind, (body: Json) => Atom[]>> = {
  openai: decodeChat,
  "openai-responses": decodeResponses,
  anthropic: decodeMessages,
};

/** What the kind can carry of the prompt. */
export function atomsOf({ messages }: Prompt, kind: RemoteKind): Atom[] {
  const isKept: Readonly<Record<RemoteKind, (block: Reasoning) => boolean>> = {
    openai: () => false,
    "openai-responses": ({ encrypted }) => encrypted !== undefined,
    anthropic: ({ signature, encrypted }) => (signature === undefined) !== (encrypted === undefined) && !encrypted?.includes(":"),
  };
  const atoms = messages.flatMap(({ role, content, reasoning = [], toolCalls = [], toolCallId }): Atom[] => [
    ...(toolCallId === undefined ? [] : [[role, "result", toolCallId] as const]),
    ...reasoning.filter(isKept[kind]).map(
      ({ text, signature, encrypted }): Atom =>
        // Redacted reasoning has no text.
        [
          role,
          "reasoning",
          kind === "anthropic" && encrypted !== undefined ? "" : text,
          kind === "openai-responses" ? undefined : signature,
          encrypted,
        ],
    ),
    ...(typeof content === "string" ? [[role, "text", content] as const] : content.map((part) => partAtom(role, part))),
    ...toolCalls.map((call): Atom => [role, "call", call.id, call.name, JSON.parse(call.arguments)]),
  ]);
  return normalized(atoms, kind);
}

/** System messages have a place of their own in one format. */
export function normalized(atoms: readonly Atom[], kind: RemoteKind): Atom[] {
  const isSystem = ([role]: Atom) => role === "system";
  const ordered = kind === "anthropic" ? [...atoms.filter(isSystem), ...atoms.filter((atom) => !isSystem(atom))] : atoms;
  const joined: Atom[] = [];
  for (const atom of ordered) {
    const [role, what, text] = atom;
    const last = joined.at(-1);
    if (what !== "text" || !isLost(kind, `${text}`)) {
      if (what === "text" && last?.[0] === role && last[1] === "text")
        joined[joined.length - 1] = [role, "text", `${last[2]}${text}`];
      else joined.push(atom);
    }
  }
  return joined;
}

function isLost(kind: RemoteKind, text: string): boolean {
  return text === "" || (kind === "anthropic" && text.trim() === "");
}

function partAtom(role: string, part: ContentPart): Atom {
  if (part.kind === "text") return [role, "text", part.text];
  const { image } = part;
  return [role, "image", image.kind === "url" ? image.url : `data:${image.mediaType};base64,${base64Of(image.data)}`];
}

function base64Of(data: ImageData): string {
  return typeof data === "string" ? data : Buffer.from(data).toString("base64");
}

function decodeChat({ messages }: Json): Atom[] {
  return messages.flatMap(({ role, content = [], tool_calls = [], tool_call_id }: Json) => [
    ...(tool_call_id === undefined ? [] : [[role, "result", tool_call_id]]),
    ...partsOf(content).map((part) => (part.type === "text" ? [role, "text", part.text] : [role, "image", part.image_url.url])),
    ...tool_calls.map((call: Json) => [role, "call", call.id, call.function.name, JSON.parse(call.function.arguments)]),
  ]);
}

function decodeResponses({ input }: Json): Atom[] {
  const contents = (role: string, content: Json) =>
    partsOf(content).map(
      (part): Atom => (part.type === "input_image" ? [role, "image", part.image_url] : [role, "text", part.text]),
    );
  return input.flatMap((item: Json) => {
    switch (item.type) {
      case "function_call":
        return [["assistant", "call", item.call_id, item.name, JSON.parse(item.arguments)]];
      case "function_call_output":
        return [["tool", "result", item.call_id], ...contents("tool", item.output)];
      case "reasoning":
        return [["assistant", "reasoning", item.summary[0]?.text ?? "", undefined, opaqueOf(item)]];
      default:
        return contents(item.role, item.content);
    }
  });
}

function opaqueOf({ id, encrypted_content: encrypted }: Json): string {
  return id === undefined ? encrypted : `${id}:${encrypted}`;
}

function decodeMessages({ system = [], messages }: Json): Atom[] {
  const block = (role: string, value: Json): Atom[] => {
    switch (value.type) {
      case "text":
        return [[role, "text", value.text]];
      case "image": {
        const { type, url, media_type, data } = value.source;
        return [[role, "image", type === "url" ? url : `data:${media_type};base64,${data}`]];
      }
      case "thinking":
        return [[role, "reasoning", value.thinking, value.signature, undefined]];
      case "redacted_thinking":
        return [[role, "reasoning", "", undefined, value.data]];
      case "tool_use":
        return [[role, "call", value.id, value.name, value.input]];
      default:
        return [["tool", "result", value.tool_use_id], ...partsOf(value.content ?? []).flatMap((part) => block("tool", part))];
    }
  };
  return [
    ...partsOf(system).flatMap((part) => block("system", part)),
    ...messages.flatMap(({ role, content }: Json) => partsOf(content).flatMap((part) => block(role, part))),
  ];
}

function partsOf(content: Json): Json[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
