import type { CountOptions } from "../domain/count-options.ts";
import { MESSAGE_TOKENS } from "../domain/input-token-bound.ts";
import type { PromptMessage } from "../domain/prompt.ts";
import { CountingThread, THREAD_LIMITS, type ThreadLimits } from "./counting-thread.ts";
import { type Encoding, loadEncoding } from "./encoding.ts";

/** Texts up to this size take less than 3 ms in the worst case; prose takes 20 µs. */
const INLINE_CHARACTERS = 1_024;

/** Counts tokens: short texts at once, long ones in a thread. Loads nothing before the first count. */
export class TokenCounter {
  readonly #thread: CountingThread;
  #encoding: Encoding | undefined;
  #loading: Promise<Encoding> | undefined;

  constructor(limits: ThreadLimits = THREAD_LIMITS) {
    this.#thread = new CountingThread(limits);
  }

  /** Number of long prompts that wait or are counted. */
  get waiting(): number {
    return this.#thread.jobs;
  }

  /** The id of the thread; undefined if none runs. */
  get threadId(): number | undefined {
    return this.#thread.threadId;
  }

  /** At most inputTokenBound. Counting may stop once there are more than `most` tokens. */
  async countPrompt(messages: readonly PromptMessage[], options: CountOptions = {}): Promise<number> {
    const texts = messages.map(({ content }) => content);
    return (await this.#count(texts, options)) + messages.length * MESSAGE_TOKENS;
  }

  async countText(text: string, options: CountOptions = {}): Promise<number> {
    return await this.#count([text], options);
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }

  async #count(texts: readonly string[], options: CountOptions): Promise<number> {
    options.signal?.throwIfAborted();
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    if (characters > INLINE_CHARACTERS) return await this.#thread.count(texts, characters, options);
    const encoding = this.#encoding ?? (await this.#load());
    let tokens = 0;
    for (const text of texts) tokens += encoding.count(text);
    return tokens;
  }

  /** Concurrent calls share one load; a failed load is retried by the next call. */
  async #load(): Promise<Encoding> {
    this.#loading ??= loadEncoding().finally(() => {
      this.#loading = undefined;
    });
    this.#encoding = await this.#loading;
    return this.#encoding;
  }
}
