import type { CountOptions } from "../domain/count-options.ts";
import { type PromptInput, templateTokensOf, textsOfPrompt } from "../domain/prompt-texts.ts";
import { CountingThread, type ThreadLimits } from "./counting-thread.ts";

/** Prompts up to this size take less than 5 ms in the worst case; prose takes 0.1 ms. */
const INLINE_CHARACTERS = 1_024;
/** Larger prompts have a thread of their own, so smaller ones never wait for them. */
const SMALL_CHARACTERS = 65_536;

const THREAD_LIMITS: ThreadLimits = { maxPrompts: 256, maxCharacters: 160_000_000 };

/** Counts tokens: short prompts at once, others in threads. Loads nothing before the first count. */
export class TokenCounter {
  readonly #small: CountingThread;
  readonly #large: CountingThread;
  #encoding: Promise<typeof import("./count-tokens.ts")> | undefined;

  /** The limits apply to each thread. */
  constructor(limits: ThreadLimits = THREAD_LIMITS) {
    this.#small = new CountingThread(limits);
    this.#large = new CountingThread(limits);
  }

  /** At most inputTokenBound. Counting may stop once there are more than `maxTokens`. */
  async countPrompt(prompt: PromptInput, options: CountOptions = {}): Promise<number> {
    const tokens = await this.countTexts(textsOfPrompt(prompt), options);
    return tokens + templateTokensOf(prompt);
  }

  async close(): Promise<void> {
    await Promise.all([this.#small.close(), this.#large.close()]);
  }

  async countTexts(texts: readonly string[], options: CountOptions = {}): Promise<number> {
    options.signal?.throwIfAborted();
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    if (characters > INLINE_CHARACTERS) {
      const thread = characters <= SMALL_CHARACTERS ? this.#small : this.#large;
      return await thread.count(texts, characters, options);
    }
    this.#encoding ??= import("./count-tokens.ts");
    return (await this.#encoding).countTexts(texts);
  }
}
