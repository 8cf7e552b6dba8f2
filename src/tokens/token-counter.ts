import { unitsOf } from "../domain/characters.ts";
import type { CountOptions } from "../domain/count-options.ts";
import { type PromptInput, templateTokensOf, textsOfPrompt } from "../domain/prompt-texts.ts";
import { CountingThread, type ThreadLimits } from "./counting-thread.ts";
import { sampleOf } from "./sample-texts.ts";

/** Prompts up to this size take less than 5 ms in the worst case; prose takes 0.1 ms. */
const INLINE_CHARACTERS = 1_024;
/** Larger prompts have a thread of their own, so smaller ones never wait for them. */
const SMALL_CHARACTERS = 65_536;

const THREAD_LIMITS: ThreadLimits = { maxPrompts: 256, maxCharacters: 160_000_000 };

type Encoding = typeof import("./count-tokens.ts");

/** Counts tokens: short prompts at once, others in threads. Loads nothing before the first count. */
export class TokenCounter {
  readonly #small: CountingThread;
  readonly #large: CountingThread;
  #encoding: Encoding | undefined;

  /** The limits apply to each thread. */
  constructor(limits: ThreadLimits = THREAD_LIMITS) {
    this.#small = new CountingThread(limits);
    this.#large = new CountingThread(limits);
  }

  /** At most inputTokenBound. Counting may stop once there are more than `maxTokens`. */
  countPrompt(prompt: PromptInput, options: CountOptions = {}): number | Promise<number> {
    const texts = textsOfPrompt(prompt);
    const ofTemplate = templateTokensOf(prompt);
    const tokens = this.#countAtOnce(texts, options);
    return tokens === undefined
      ? this.#countLater(texts, options).then((later) => later + ofTemplate)
      : tokens + ofTemplate;
  }

  /** A function that cuts a text. It is for short texts: it runs on the main thread. */
  async loadFirstTokens(): Promise<Encoding["firstTokens"]> {
    return (await this.#load()).firstTokens;
  }

  async close(): Promise<void> {
    await Promise.all([this.#small.close(), this.#large.close()]);
  }

  async countTexts(texts: readonly string[], options: CountOptions = {}): Promise<number> {
    return this.#countAtOnce(texts, options) ?? (await this.#countLater(texts, options));
  }

  async estimatePrompt(prompt: PromptInput): Promise<number> {
    return (await this.estimateTexts(textsOfPrompt(prompt))) + templateTokensOf(prompt);
  }

  async estimateTexts(texts: readonly string[]): Promise<number> {
    const sample = sampleOf(texts, INLINE_CHARACTERS, Math.random);
    const encoding = await this.#load();
    return Math.ceil((encoding.countTexts(sample) * unitsOf(texts)) / Math.max(unitsOf(sample), 1));
  }

  /** Undefined for long texts, and before the first count. */
  #countAtOnce(texts: readonly string[], { signal }: CountOptions): number | undefined {
    signal?.throwIfAborted();
    return unitsOf(texts) <= INLINE_CHARACTERS ? this.#encoding?.countTexts(texts) : undefined;
  }

  async #countLater(texts: readonly string[], options: CountOptions): Promise<number> {
    const characters = unitsOf(texts);
    if (characters <= INLINE_CHARACTERS) {
      return (await this.#load()).countTexts(texts);
    }
    const thread = characters <= SMALL_CHARACTERS ? this.#small : this.#large;
    return await thread.count(texts, characters, options);
  }

  async #load(): Promise<Encoding> {
    this.#encoding ??= await import("./count-tokens.ts");
    return this.#encoding;
  }
}
