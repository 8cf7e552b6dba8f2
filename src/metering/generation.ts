import { DomainError, type Reason } from "../domain/errors.ts";
import type { FinishReason, Prompt, TokenUsage } from "../domain/generation.ts";
import type { Model } from "../domain/model.ts";
import { clampUsage, costOf } from "../domain/price.ts";
import type { AdmittedKey } from "../store/admit.ts";
import type { Charge } from "../store/billing.ts";
import type { UpstreamEvent } from "../upstreams/upstream.ts";
import { encodeAnswer } from "./answer.ts";
import type { Reply } from "./ask.ts";
import { GatheredText } from "./gathered-text.ts";
import type { Settler } from "./settler.ts";
import type { Size } from "./size.ts";
import type { Tokens } from "./tokens.ts";

/** Of what an upstream did not count itself. */
const COUNT_MS = 10_000;
const BYTES_PER_TOKEN = 4;

/** Why a generation is stopped before its end. */
type Stop = "gone" | "deadline_exceeded" | "revoked_api_key" | "unavailable";

/** What is held, asked and paid by whom. */
export type Order = {
  readonly id: string;
  readonly key: AdmittedKey;
  readonly requestId: string;
  readonly model: Model;
  readonly prompt: Prompt;
  readonly size: Size;
  /** Whether the caller gets the pieces as they come. */
  readonly streamed: boolean;
  /** Whether the answer is kept for the next call with the same idempotency key. */
  readonly kept: boolean;
};

export type GenerationParts = {
  readonly run: (model: Model, prompt: Prompt, signal: AbortSignal) => AsyncIterable<UpstreamEvent>;
  readonly settler: Settler;
  readonly tokens: Tokens;
};

type Outcome = { readonly charge: Charge | undefined; readonly usage: TokenUsage };

type Settled = { readonly outcome: Outcome; readonly balanceMicros: bigint | undefined };

/**
 * A generation whose cost is held. However it ends – done, failed, stopped, left – it is settled exactly once, and
 * before its caller is told the end.
 */
export class Generation {
  readonly order: Order;
  readonly #parts: GenerationParts;
  readonly #upstream = new AbortController();
  readonly #events: AsyncIterator<UpstreamEvent>;
  readonly #text = new GatheredText();
  #done: Extract<UpstreamEvent, { kind: "done" }> | undefined;
  #stop: Stop | undefined;
  #failure: unknown;
  #stopError: unknown;
  #settled: Promise<Settled> | undefined;
  #onSettled: (() => void) | undefined;

  constructor(order: Order, parts: GenerationParts) {
    this.order = order;
    this.#parts = parts;
    this.#events = parts.run(order.model, order.prompt, this.#upstream.signal)[Symbol.asyncIterator]();
  }

  /** The next piece; undefined when there is no more, whatever the reason. */
  async next(): Promise<string | undefined> {
    if (this.#done || this.#stop || this.#failure !== undefined) return undefined;
    try {
      const { value, done } = await this.#events.next();
      if (this.#stop) return undefined;
      if (done) throw new DomainError("upstream_error", { cause: new Error("the upstream said no end") });
      if (value.kind === "done") {
        this.#done = value;
        this.#letGo();
        return undefined;
      }
      this.#text.add(value.content);
      return value.content;
    } catch (error) {
      if (!this.#stop) this.#failure = error;
      return undefined;
    }
  }

  /** Stops the upstream and settles what was produced, whether or not anybody waits for the next piece. */
  stop(why: Stop, error: unknown = new DomainError(why === "gone" ? "unavailable" : why)): void {
    if (this.#settled || this.#stop || this.#done) return;
    this.#stop = why;
    this.#stopError = error;
    this.#upstream.abort();
    this.#letGo();
    // Whoever waits for the end hears of a failure; the settler has logged it.
    this.#settle().catch(() => undefined);
  }

  /** Called once, when the hold has ended or could not be ended. */
  onSettled(listener: () => void): void {
    this.#onSettled = listener;
  }

  /** Settles and says how it ended: the reply, or why there is none. */
  async finish(): Promise<Reply> {
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

  #settle(): Promise<Settled> {
    this.#settled ??= this.#end().finally(() => this.#onSettled?.());
    return this.#settled;
  }

  /** An upstream that waits for its reader would keep its connection. */
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
    return { outcome, balanceMicros: ended.outcome === "settled" ? ended.balanceMicros : undefined };
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

  /** A caller who has got, or could have got, a part of the reply pays for that part. */
  #isCharged(): boolean {
    if (this.#done) return true;
    if (this.#text.isEmpty) return false;
    return this.order.streamed || this.#stop === "gone";
  }

  /** A counter that is overloaded or too slow must not cost the charge: then the usual length of a token tells. */
  async #count(): Promise<TokenUsage> {
    const { tokens } = this.#parts;
    const { prompt, size, key } = this.order;
    const text = this.#text.toString();
    const options = { signal: AbortSignal.timeout(COUNT_MS), payer: key.accountId };
    try {
      return {
        inputTokens: size.counted ? size.inputTokens : await tokens.countPrompt(prompt.messages, options),
        outputTokens: await tokens.countText(text, options),
      };
    } catch {
      return {
        inputTokens: size.counted ? size.inputTokens : Math.ceil(size.inputTokens / BYTES_PER_TOKEN),
        outputTokens: Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN),
      };
    }
  }

  #reasonText({ inputTokens, outputTokens }: TokenUsage): string {
    const text = `Generation with ${this.order.model.id}: ${inputTokens} tokens in, ${outputTokens} tokens out`;
    return this.#done ? text : `${text} (${this.#stop ? CUT_TEXTS[this.#stop] : "the model broke off"})`;
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
    if (this.#stop) return this.#stop === "gone" ? "unavailable" : this.#stop;
    return this.#failure instanceof DomainError ? this.#failure.reason : "upstream_error";
  }
}

const CUT_TEXTS: Record<Stop, string> = {
  gone: "the caller left",
  deadline_exceeded: "cut off at the deadline",
  revoked_api_key: "cut off, the key was revoked",
  unavailable: "cut off, the server stopped",
};
