import { createHash, type Hash } from "node:crypto";
import type { ContentPart, PromptMessage } from "../domain/prompt.ts";
import type { GenerationRequest } from "./generation-request.ts";

/** Hashing one slice takes about a millisecond; then the event loop runs other work. */
const SLICE_CHARACTERS = 524_288;

/** Equal payloads have equal digests. Large texts are hashed in slices. */
export async function digestOf(method: string, request: GenerationRequest): Promise<string> {
  const { messages, fields, maxCostMicros, ...others } = request;
  const hash = new SlicedHash();
  await hash.update(JSON.stringify([method, others, String(maxCostMicros)]));
  for (const message of messages) await addMessage(hash, message);
  return hash.digest();
}

/** Cache controls change no reply, so they are not included. */
async function addMessage(hash: SlicedHash, message: PromptMessage): Promise<void> {
  const { role, content, toolCalls, reasoning, toolCallId, isError } = message;
  const isText = typeof content === "string";
  await hash.update(isText ? role : `${role} ${content.length}`);
  if (isText) await hash.update(content);
  else for (const part of content) await addPart(hash, part);
  if (toolCalls || reasoning || toolCallId !== undefined) {
    await hash.update(JSON.stringify([toolCalls, reasoning, toolCallId, isError]));
  }
}

async function addPart(hash: SlicedHash, part: ContentPart): Promise<void> {
  if (part.kind === "text") {
    await hash.update(`text ${part.text}`);
    return;
  }
  const { image, detail } = part;
  await hash.update(`image ${detail}`);
  await hash.update(image.kind === "url" ? image.url : `${image.mediaType} ${image.base64}`);
}

/** Each text follows its length, so two different lists of texts never give the same bytes. */
class SlicedHash {
  readonly #hash: Hash = createHash("sha256");
  #fresh = SLICE_CHARACTERS;

  async update(text: string): Promise<void> {
    this.#hash.update(`${text.length}:`);
    for (let at = 0; at < text.length; at += SLICE_CHARACTERS) {
      const slice = text.slice(at, at + SLICE_CHARACTERS);
      this.#hash.update(slice, "utf16le");
      this.#fresh -= slice.length;
      if (this.#fresh > 0) continue;
      this.#fresh = SLICE_CHARACTERS;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  digest(): string {
    return this.#hash.digest("base64url");
  }
}
