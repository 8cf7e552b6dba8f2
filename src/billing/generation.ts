import { DomainError, type Reason } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import { clampUsage, costOf } from "../domain/price.ts";
import type { FinishReason, Prompt, TokenUsage } from "../domain/prompt.ts";
import type { AdmittedKey } from "../store/admit.ts";
import type { Charge } from "../store/billing.ts";
import { Progress } from "../upstreams/runner/progress.ts";
import type { UpstreamEvent } from "../upstreams/upstream.ts";
import type { UpstreamCall } from "../upstreams/upstream-call.ts";
import { GatheredText } from "./gathered-text.ts";
import type { Reply } from "./generation-request.ts";
import type { Size } from "./generation-size.ts";
import type { Settler } from "./settler.ts";
import { STOPS, type Stop, UPSTREAM_FAILED_TEXT } from "./stops.ts";
import { encodeAnswer } from "./stored-answer.ts";
import type { Tokens } from "./token-counts.ts";

/** Time limit for counting the tokens that the upstream did not report. */
const COUNT_MS = 10_000;
const BYTES_PER_TOKEN = 4;

/** A generation with a placed hold. */
export type Order = {
  readonly id: string;
  readonly key: AdmittedKey;
  readonly requestId: string;
  readonly model: Model;
  readonly prompt: Prompt;
  readonly size: Size;
  /** Whether pieces are sent to the caller as they arrive. */
  readonly streamed: boolean;
  /** Whether the answer is stored for a retry with the same idempotency key. */
  readonly kept: boolean;
};

export type GenerationParts = {
  readonly run: (call: UpstreamCall) => AsyncIterable<UpstreamEvent>;
  readonly settler: Settler;
  readonly tokens: Tokens;
};

type Outcome = { readonly charge: Charge | undefined; readonly usage: TokenUsage };

type Settled = { readonly outcome: Outcome; readonly balanceMicros: bigint | undefined };

/**
 * A generation with a hold. It is settled exactly once, however it ends, and before the caller gets the last
 * part of the response.
 */
export class Generation {
  readonly order: Order;
  readonly #parts: GenerationParts;
  readonly #upstream = new AbortController();
  readonly #progress = new Progress();
  readonly #events: AsyncIterator<UpstreamEvent>;
  readonly #text = new GatheredText();
  #charge: Charge | undefined;
  #done: Extract<UpstreamEvent, { kind: "done" }> | undefined;
  #stop: Stop | undefined;
  #failure: unknown;
  #stopError: unknown;
  /** Set when the reader left while the generation continues: the error that the reader gets. */
  #left: { readonly error: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #settled: Promise<Settled> | undefined;
  #isSettled = false;
  readonly #onSettled: (() => void)[] = [];

  constructor(order: Order, parts: GenerationParts) {
    this.order = order;
    this.#parts = parts;
    const { model, prompt, requestId, key } = order;
    const events = parts.run({
      model,
      prompt,
      requestId,
      accountId: key.accountId,
      signal: this.#upstream.signal,
      progress: this.#progress,
    });
    this.#events = events[Symbol.asyncIterator]();
  }

  /** Returns the next piece, or undefined when the generation has ended for any reason. */
  async next(): Promise<string | undefined> {
    if (this.#left) return undefined;
    const read = this.#read();
    if (!this.order.kept) return await read;
    const left = Promise.withResolvers<undefined>();
    this.#wakeReader = () => left.resolve(undefined);
    return await Promise.race([read, left.promise]);
  }

  /** Stops the upstream and settles the text produced so far, even if no reader waits for the next piece. */
  stop(why: Stop, error: unknown = stopError(why)): void {
    if (this.#hasEnded) return;
    this.#stop = why;
    this.#stopError = error;
    this.#upstream.abort();
    this.#letGo();
    // The error is reported to the reader that waits for the end; the settler has logged it.
    this.#settle().catch(() => undefined);
  }

  /**
   * Ends the reader's stream. A generation whose answer is stored continues, for a retry with the same
   * idempotency key; any other stops.
   */
  leave(why: "gone" | "deadline_exceeded", error: unknown = stopError(why)): void {
    if (!this.order.kept) {
      this.stop(why, error);
      return;
    }
    if (this.#hasEnded || this.#left) return;
    this.#left = { error };
    this.#wakeReader?.();
    this.#goOn().catch(() => undefined);
  }

  /** The last upstream that received the prompt; undefined if none did. */
  get upstream(): string | undefined {
    return this.#progress.upstream;
  }

  /** The charge in the ledger; undefined until it is settled, and if nothing is charged. */
  get charge(): Charge | undefined {
    return this.#charge;
  }

  /**
   * Calls the listener once, when the hold has ended or its settlement has failed; immediately if it already
   * has.
   */
  onSettled(listener: () => void): void {
    if (this.#isSettled) listener();
    else this.#onSettled.push(listener);
  }

  /** Settles the hold, then returns the reply or throws the reason why there is none. */
  async finish(): Promise<Reply> {
    if (this.#left) throw this.#left.error;
    const { outcome, balanceMicros } = await this.#settle();
    if (this.#stop) throw this.#stopError;
    if (!this.#done) throw this.#failure;
    if (!outcome.charge || balanceMicros === undefined) {
      throw new DomainError("unavailable", {
        message: "The call took longer than its funds could be held. Nothing was charged.",
      });
    }
    return {
      id: this.order.id,
      model: this.order.model.id,
      content: this.#text.toString(),
      finishReason: this.#done.finishReason,
      usage: outcome.usage,
      costMicros: outcome.charge.amountMicros,
      balanceMicros,
    };
  }

  get #hasEnded(): boolean {
    return Boolean(this.#settled || this.#stop || this.#done) || this.#failure !== undefined;
  }

  async #goOn(): Promise<void> {
    while ((await this.#read()) !== undefined);
    await this.#settle();
  }

  async #read(): Promise<string | undefined> {
    if (this.#hasEnded) return undefined;
    try {
      const { value, done } = await this.#events.next();
      if (this.#hasEnded) return undefined;
      if (done) throw new DomainError("upstream_error", { cause: new Error("the upstream sent no end") });
      if (value.kind === "done") {
        this.#done = value;
        this.#letGo();
        return undefined;
      }
      this.#text.add(value.content);
      return value.content;
    } catch (error) {
      if (!this.#hasEnded) this.#failure = error;
      return undefined;
    }
  }

  #settle(): Promise<Settled> {
    this.#settled ??= this.#end().finally(() => {
      this.#isSettled = true;
      for (const listener of this.#onSettled) listener();
    });
    return this.#settled;
  }

  /** Closes the event stream: an upstream that waits for its reader would keep its connection open. */
  #letGo(): void {
    this.#events.return?.().catch(() => undefined);
  }

  async #end(): Promise<Settled> {
    const { id, key } = this.order;
    const outcome = await this.#outcome();
    const ended = await this.#parts.settler.end({
      holdId: id,
      accountId: key.accountId,
      charge: outcome.charge,
    });
    if (ended.outcome !== "settled") return { outcome, balanceMicros: undefined };
    this.#charge = outcome.charge;
    return { outcome, balanceMicros: ended.balanceMicros };
  }

  async #outcome(): Promise<Outcome> {
    if (!this.#isCharged()) return { charge: undefined, usage: { inputTokens: 0, outputTokens: 0 } };
    const { model, size, key, requestId, kept } = this.order;
    const usage = clampUsage(this.#done?.usage ?? (await this.#count()), {
      inputTokens: size.inputTokens,
      outputTokens: size.maxTokens,
    });
    return {
      usage,
      charge: {
        amountMicros: costOf(model, usage),
        reason: this.#reasonText(usage),
        requestId,
        keyId: key.keyId,
        model: model.id,
        ...usage,
        inputPrice: model.inputMicrosPerMillionTokens,
        outputPrice: model.outputMicrosPerMillionTokens,
        answer: kept ? this.#answer() : undefined,
      },
    };
  }

  #isCharged(): boolean {
    if (this.#done) return true;
    if (this.#stop && STOPS[this.#stop].paidOnceAsked) return this.#progress.isAsked;
    return this.order.streamed && !this.#text.isEmpty;
  }

  /** If counting fails or times out, the charge uses an estimate from the bytes. */
  async #count(): Promise<TokenUsage> {
    const { tokens } = this.#parts;
    const { prompt, size, key } = this.order;
    const text = this.#produced();
    const options = { signal: AbortSignal.timeout(COUNT_MS), payer: key.accountId };
    try {
      return {
        inputTokens: size.counted ? size.promptTokens : await tokens.countPrompt(prompt.messages, options),
        outputTokens: await tokens.countText(text, options),
      };
    } catch {
      return {
        inputTokens: size.counted ? size.promptTokens : Math.ceil(size.promptTokens / BYTES_PER_TOKEN),
        outputTokens: Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN),
      };
    }
  }

  /** Includes text that was produced but not delivered if the caller or the account caused the stop. */
  #produced(): string {
    const delivered = this.#text.toString();
    return this.#stop && STOPS[this.#stop].paidOnceAsked ? delivered + this.#progress.unread : delivered;
  }

  #reasonText({ inputTokens, outputTokens }: TokenUsage): string {
    const text = `Generation with ${this.order.model.id}: ${inputTokens} tokens in, ${outputTokens} tokens out`;
    if (this.#done) return text;
    return `${text} (${this.#stop ? STOPS[this.#stop].text : UPSTREAM_FAILED_TEXT})`;
  }

  #answer(): string {
    return encodeAnswer({
      id: this.order.id,
      content: this.#text.toString(),
      finishReason: this.#done?.finishReason ?? ("stop" satisfies FinishReason),
      failure: this.#done ? undefined : this.#failureReason(),
    });
  }

  #failureReason(): Reason {
    if (this.#stop) return STOPS[this.#stop].reason;
    return this.#failure instanceof DomainError ? this.#failure.reason : "upstream_error";
  }
}

function stopError(why: Stop): DomainError {
  const { reason, message } = STOPS[why];
  return new DomainError(reason, { message });
}
