import { SANDBOX_IMAGE_TOKENS, type SandboxSettings } from "../../domain/model.ts";
import { nextTurn } from "../../domain/next-turn.ts";
import type { Prompt } from "../../domain/prompt.ts";
import { imagesIn, type PromptInput } from "../../domain/prompt-texts.ts";
import { usageOf } from "../../domain/usage.ts";
import { Progress } from "../progress.ts";
import { UnreadDeltas } from "../unread-deltas.ts";
import type { Upstream, UpstreamEnd, UpstreamEvent } from "../upstream.ts";
import { Pauses } from "./pauses.ts";
import { directiveOf, requestedFailure } from "./sandbox-directive.ts";
import { SandboxPieces } from "./sandbox-pieces.ts";
import { planOf } from "./sandbox-plan.ts";
import { sandboxVectors } from "./sandbox-vectors.ts";

type SandboxOptions = {
  readonly settings: SandboxSettings;
  readonly countPrompt: (prompt: PromptInput, signal: AbortSignal) => Promise<number>;
};

/**
 * Pieces between two yields to the event loop; without this, a reply with no delay would block other calls.
 */
const PIECES_PER_TURN = 64;

/** A model without network or cost: equal prompts get equal replies, with exact token counts. */
export class SandboxUpstream implements Upstream {
  readonly name = "sandbox";
  readonly #options: SandboxOptions;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  async *generate(
    prompt: Prompt,
    signal: AbortSignal,
    progress = new Progress(),
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    progress.wasSent = true;
    const { settings, countPrompt } = this.#options;
    const textTokens = await countPrompt(prompt, signal);
    const { task } = prompt.options;
    if (task?.kind === "embed") {
      yield await this.#embed(prompt, task.dimensions, textTokens, signal);
      return;
    }
    const imageTokens = imagesIn(prompt.messages) * SANDBOX_IMAGE_TOKENS;
    const plan = planOf(prompt);
    const { delay_ms: delayMs = settings.delayMs, cached, cache_write } = plan.directive;
    const reply = new SandboxPieces(plan, prompt);
    const pauses = delayMs > 0 ? new Pauses(delayMs, signal) : undefined;
    // A unary reply without delay joins its pieces.
    const joined = prompt.streamed || pauses ? undefined : new UnreadDeltas();
    let pieces = 0;
    try {
      while (reply.hasMore) {
        if (pauses) {
          await pauses.next();
        } else if (pieces++ % PIECES_PER_TURN === PIECES_PER_TURN - 1) {
          if (joined) yield* joined.takeAll();
          await nextTurn();
        }
        signal.throwIfAborted();
        for (const delta of reply.take()) {
          if (joined) joined.append(delta);
          else yield delta;
        }
      }
    } catch (error) {
      if (joined) yield* joined.takeAll();
      throw error;
    } finally {
      pauses?.close();
    }
    if (joined) yield* joined.takeAll();
    const usage = usageOf({
      inputTokens: textTokens + imageTokens,
      imageTokens,
      cachedInput: cached,
      cacheWrite: cache_write,
      outputTokens: reply.outputTokens,
      reasoning: reply.reasoningTokens,
    });
    yield { kind: "done", finishReason: reply.finishReason, usage };
  }

  async close(): Promise<void> {}

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
