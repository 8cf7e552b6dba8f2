import { nextTurn } from "../../domain/next-turn.ts";
import type { PromptMessage } from "../../domain/prompt.ts";
import { textsOfMessage } from "../../domain/prompt-texts.ts";

const DEFAULT_DIMENSIONS = 256;
/** Of a long text, the beginning is enough. */
const MAX_CHARACTERS = 16_384;
/** Work between two yields to the event loop, in characters and dimensions: about two milliseconds. */
const WORK_PER_TURN = 16_384;

/** A unit vector for each message. */
export async function sandboxVectors(
  messages: readonly PromptMessage[],
  dimensions = DEFAULT_DIMENSIONS,
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = [];
  let work = 0;
  for (const message of messages) {
    const text = textsOfMessage(message).join(" ").slice(0, MAX_CHARACTERS);
    vectors.push(vectorOf(text, dimensions));
    work += text.length + dimensions;
    if (work < WORK_PER_TURN) continue;
    work = 0;
    await nextTurn();
  }
  return vectors;
}

/** Words and groups of three letters add to dimensions that their hashes select, so similar texts are near. */
function vectorOf(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  const normal = ` ${text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ")} `;
  for (const word of normal.trim().split(" ")) addTo(vector, word, 2);
  for (let at = 0; at + 3 <= normal.length; at++) addTo(vector, normal.slice(at, at + 3), 1);
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  if (length === 0) vector[0] = 1;
  else for (let i = 0; i < dimensions; i++) vector[i] = (vector[i] ?? 0) / length;
  return vector;
}

function addTo(vector: Float32Array, feature: string, weight: number): void {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
  const at = (mixed >>> 1) % vector.length;
  vector[at] = (vector[at] ?? 0) + (mixed % 2 === 0 ? weight : -weight);
}
