import { type CountOptions, type PromptInput, templateTokensOf, textsOfPrompt } from "../domain/prompt.ts";
import { codePointEnd, unitsOf } from "../domain/text.ts";
import { CountingThread, type ThreadLimits } from "./counting-thread.ts";

/** Prompts up to this size take less than 5 ms in the worst case; prose takes 0.1 ms. */
const INLINE_CHARACTERS = 1_024;
/** Larger prompts have a thread of their own, so smaller ones never wait for them. */
const SMALL_CHARACTERS = 65_536;

/** A thread keeps at least 40 MiB, and more after large prompts. */
const THREAD_LIMITS: ThreadLimits = { maxPrompts: 256, maxCharacters: 160_000_000, idleMs: 30_000 };

type Encoding = typeof import("./count-tokens.ts");

/** Counts tokens: short prompts at once, others in threads. Loads nothing before the first count. */
export class TokenCounter {
  readonly #small: CountingThread;
  readonly #large: CountingThread;
  #encoding: Encoding | undefined;

  /** The limits apply to each thread. */
  constructor(limits: Partial<ThreadLimits> = {}) {
    this.#small = new CountingThread({ ...THREAD_LIMITS, ...limits });
    this.#large = new CountingThread({ ...THREAD_LIMITS, ...limits });
  }

  /** At most inputTokenBound. Counting may stop once there are more than `maxTokens`. */
  countPrompt(prompt: PromptInput, options: CountOptions = {}): number | Promise<number> {
    const texts = textsOfPrompt(prompt);
    const ofTemplate = templateTokensOf(prompt);
    const tokens = this.#countAtOnce(texts, options);
    return tokens === undefined ? this.#countLater(texts, options).then((later) => later + ofTemplate) : tokens + ofTemplate;
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

const SAMPLE_PARTS = 4;

/**
 * A sample of at most `maxUnits` units: a part from a random place of each of four equal sections of the joined texts. A part
 * that reaches the end of the texts continues at their beginning, so every character is taken with the same probability, and a
 * caller cannot choose which ones are. Returns all texts if they have at most `maxUnits` units.
 */
export function sampleOf(texts: readonly string[], maxUnits: number, random: () => number): string[] {
  const filled = texts.filter((text) => text !== "");
  const units = unitsOf(filled);
  if (units <= maxUnits) return filled;
  const sample: string[] = [];
  for (let part = 0; part < SAMPLE_PARTS; part++) {
    const position = Math.floor(((part + random()) * units) / SAMPLE_PARTS);
    appendUnits(sample, filled, position, Math.floor(maxUnits / SAMPLE_PARTS));
  }
  return sample;
}

/** Appends the units from the position on, each text as a part of its own. A surrogate pair at an end is left out. */
function appendUnits(sample: string[], texts: readonly string[], position: number, count: number): void {
  let index = 0;
  let start = position;
  for (; start >= (texts[index] ?? "").length; index++) start -= (texts[index] ?? "").length;
  for (let missing = count; missing > 0; index = (index + 1) % texts.length, start = 0) {
    const text = texts[index] ?? "";
    const from = Math.max(codePointEnd(text, start), 0);
    const end = codePointEnd(text, from + missing);
    if (end > from) sample.push(text.slice(from, end));
    missing -= text.length - start;
  }
}
