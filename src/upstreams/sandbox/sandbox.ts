import { SANDBOX_IMAGE_TOKENS, type SandboxSettings } from "../../domain/model.ts";
import { nextTurn, TurnMeter } from "../../domain/next-turn.ts";
import type { Prompt, PromptMessage } from "../../domain/prompt.ts";
import { imagesIn, type PromptInput, textsOfMessage } from "../../domain/prompt-texts.ts";
import { usageOf } from "../../domain/usage.ts";
import { Progress, type Upstream, type UpstreamEnd } from "../upstream.ts";
import { SandboxPieces } from "./pieces.ts";
import { directiveOf, planOf, requestedFailure } from "./plan.ts";
import { Pauses, type PlannedReply, SandboxReply } from "./reply.ts";

type SandboxOptions = {
  readonly settings: SandboxSettings;
  readonly countPrompt: (prompt: PromptInput, signal: AbortSignal) => number | Promise<number>;
};

/** A model without network or cost: equal prompts get equal replies, with exact token counts. */
export class SandboxUpstream implements Upstream {
  readonly name = "sandbox";
  readonly #options: SandboxOptions;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  generate(prompt: Prompt, signal: AbortSignal, progress = new Progress()): SandboxReply {
    return new SandboxReply(signal, async () => {
      progress.wasSent = true;
      const textTokens = await this.#options.countPrompt(prompt, signal);
      const { task, responseFormat, tools } = prompt.options;
      // Making a value for a schema can take 40 ms, so the values of concurrent calls are made in different turns.
      if (responseFormat?.kind === "json_schema" || tools) await nextTurn();
      return task?.kind === "embed"
        ? await this.#embed(prompt, task.dimensions, textTokens, signal)
        : this.#plan(prompt, textTokens);
    });
  }

  async close(): Promise<void> {}

  #plan(prompt: Prompt, textTokens: number): PlannedReply {
    const plan = planOf(prompt);
    const {
      delay_ms: delayMs = this.#options.settings.delayMs,
      cached,
      cache_write,
      cache_write_1h,
    } = plan.directive;
    const pieces = new SandboxPieces(plan, prompt);
    const imageTokens = imagesIn(prompt.messages) * SANDBOX_IMAGE_TOKENS;
    const end = (): UpstreamEnd => {
      const { finishReason, stopSequence, outputTokens, reasoningTokens } = pieces;
      const usage = usageOf({
        inputTokens: textTokens + imageTokens,
        imageTokens,
        cachedInput: cached,
        cacheWrite: cache_write,
        cacheWrite1h: cache_write_1h,
        outputTokens,
        reasoning: reasoningTokens,
      });
      return { kind: "done", finishReason, stopSequence, usage };
    };
    return { pieces, delayMs, isJoined: !prompt.streamed, end };
  }

  async #embed(
    { messages }: Prompt,
    dimensions: number | undefined,
    inputTokens: number,
    signal: AbortSignal,
  ): Promise<UpstreamEnd> {
    const { delay_ms: delayMs = this.#options.settings.delayMs, fail_after } = directiveOf(messages[0]);
    const pauses = new Pauses(delayMs, signal);
    if (delayMs > 0) await pauses.next().finally(() => pauses.close());
    if (fail_after !== undefined) throw requestedFailure();
    const vectors = await sandboxVectors(messages, dimensions);
    signal.throwIfAborted();
    return { kind: "done", finishReason: "stop", usage: usageOf({ inputTokens, outputTokens: 0 }), vectors };
  }
}

const DEFAULT_DIMENSIONS = 256;
/** Only the beginning of a long text is used. */
const MAX_VECTOR_CHARACTERS = 16_384;
/** Work between two yields to the event loop, in characters and dimensions: about two milliseconds. */
const WORK_PER_TURN = 16_384;

/** A unit vector for each message. */
export async function sandboxVectors(
  messages: readonly PromptMessage[],
  dimensions = DEFAULT_DIMENSIONS,
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = [];
  const meter = new TurnMeter(WORK_PER_TURN);
  for (const message of messages) {
    const text = textsOfMessage(message).join(" ").slice(0, MAX_VECTOR_CHARACTERS);
    vectors.push(vectorOf(text, dimensions));
    if (meter.isDue(text.length + dimensions)) await nextTurn();
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
