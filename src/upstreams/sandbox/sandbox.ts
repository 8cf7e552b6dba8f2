import { SANDBOX_IMAGE_TOKENS, type SandboxSettings } from "../../domain/model.ts";
import type { Prompt } from "../../domain/prompt.ts";
import { imagesIn, type PromptInput } from "../../domain/prompt-texts.ts";
import { usageOf } from "../../domain/usage.ts";
import { Progress } from "../progress.ts";
import type { Upstream, UpstreamEnd } from "../upstream.ts";
import { Pauses } from "./pauses.ts";
import { directiveOf, requestedFailure } from "./sandbox-directive.ts";
import { SandboxPieces } from "./sandbox-pieces.ts";
import { planOf } from "./sandbox-plan.ts";
import { type PlannedReply, SandboxReply } from "./sandbox-reply.ts";
import { sandboxVectors } from "./sandbox-vectors.ts";

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
      const { task } = prompt.options;
      return task?.kind === "embed"
        ? await this.#embed(prompt, task.dimensions, textTokens, signal)
        : this.#plan(prompt, textTokens);
    });
  }

  async close(): Promise<void> {}

  #plan(prompt: Prompt, textTokens: number): PlannedReply {
    const plan = planOf(prompt);
    const { delay_ms: delayMs = this.#options.settings.delayMs, cached, cache_write } = plan.directive;
    const pieces = new SandboxPieces(plan, prompt);
    const imageTokens = imagesIn(prompt.messages) * SANDBOX_IMAGE_TOKENS;
    const end = (): UpstreamEnd => {
      const { finishReason, stopSequence, outputTokens, reasoningTokens } = pieces;
      const usage = usageOf({
        inputTokens: textTokens + imageTokens,
        imageTokens,
        cachedInput: cached,
        cacheWrite: cache_write,
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
