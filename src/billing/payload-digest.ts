import { createHash } from "node:crypto";
import type { GenerationRequest } from "./generation-request.ts";

/** Hashing one slice takes about a millisecond; then the event loop runs other work. */
const SLICE_CHARACTERS = 524_288;

/** Equal payloads have equal digests. Large texts are hashed in slices. */
export async function digestOf(method: string, request: GenerationRequest): Promise<string> {
  const hash = createHash("sha256");
  const { model, maxTokens, temperature, stop, messages } = request;
  hash.update(JSON.stringify([method, model, maxTokens ?? null, temperature ?? null, stop]));
  let fresh = SLICE_CHARACTERS;
  for (const { role, content } of messages) {
    hash.update(`${role}:${content.length}:`);
    for (let at = 0; at < content.length; at += SLICE_CHARACTERS) {
      const slice = content.slice(at, at + SLICE_CHARACTERS);
      hash.update(slice, "utf16le");
      fresh -= slice.length;
      if (fresh > 0) continue;
      fresh = SLICE_CHARACTERS;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return hash.digest("base64url");
}
