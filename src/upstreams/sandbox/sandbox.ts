import { nextTurn, TurnMeter } from "../../domain/fairness.ts";
import { SANDBOX_IMAGE_TOKENS, type SandboxSettings } from "../../domain/model.ts";
import { type Delta, UnreadDeltas } from "../../domain/output.ts";
import { usageOf } from "../../domain/price.ts";
import {
  type CountOptions,
  imagesIn,
  type Prompt,
  type PromptInput,
  type PromptMessage,
  textsOfMessage,
} from "../../domain/prompt.ts";
import { Progress, type Upstream, type UpstreamEnd, type UpstreamEvent } from "../upstream.ts";
import { SandboxPieces } from "./pieces.ts";
import { directiveOf, planOf, requestedFailure } from "./plan.ts";

type SandboxOptions = {
  readonly settings: SandboxSettings;
  readonly countPrompt: (prompt: PromptInput, options: CountOptions) => number | Promise<number>;
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
      const textTokens = await this.#options.countPrompt(prompt, { signal });
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
    const { delay_ms: delayMs = this.#options.settings.delayMs, cached, cache_write, cache_write_1h } = plan.directive;
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

type PlannedReply = {
  readonly pieces: SandboxPieces;
  /** Before each piece. */
  readonly delayMs: number;
  /** Whether consecutive pieces are joined, if there is no delay. */
  readonly isJoined: boolean;
  /** Called after the last piece. */
  readonly end: () => UpstreamEnd;
};

type Result = IteratorResult<UpstreamEvent, undefined>;

/**
 * Pieces between two yields to the event loop; without this, a reply with no delay would block other calls.
 */
const PIECES_PER_TURN = 60;
const END = { done: true, value: undefined } as const;

/** The events of a reply that the first read starts. Not an async generator: see MappedStream. */
class SandboxReply implements AsyncIterableIterator<UpstreamEvent, undefined> {
  readonly #signal: AbortSignal;
  readonly #start: () => Promise<PlannedReply | UpstreamEnd>;
  #reply: PlannedReply | undefined;
  #pauses: Pauses | undefined;
  /** Pieces that were taken and not read. */
  #ready: Iterator<Delta, unknown> | undefined;
  #isEnded = false;

  /** The reply to a task that has no pieces is its end. */
  constructor(signal: AbortSignal, start: () => Promise<PlannedReply | UpstreamEnd>) {
    this.#signal = signal;
    this.#start = start;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    if (this.#pauses && !this.#ready && this.#reply?.pieces.hasMore) {
      return this.#pauses.next().then(this.#takeOne, this.#onFailure);
    }
    return this.#readOther();
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#close();
    return END;
  }

  readonly #takeOne = (): Result | Promise<Result> => {
    if (this.#isEnded || !this.#reply) return END;
    const deltas = this.#reply.pieces.take();
    const [value] = deltas;
    if (value && deltas.length === 1) return { done: false, value };
    this.#ready = deltas.values();
    return this.next();
  };

  readonly #onFailure = (error: unknown): never => {
    this.#close();
    throw error;
  };

  async #readOther(): Promise<Result> {
    if (!this.#reply && !this.#isEnded) {
      const started = await this.#start().catch(this.#onFailure);
      if ("kind" in started) return this.#readEnd(started);
      if (!this.#isEnded) this.#open(started);
    }
    while (this.#reply && !this.#isEnded) {
      const next = this.#ready?.next();
      if (next?.done === false) {
        this.#checkAborted();
        return { done: false, value: next.value };
      }
      this.#ready = undefined;
      const { pieces, end } = this.#reply;
      if (pieces.isFailing) this.#onFailure(requestedFailure());
      if (!pieces.hasMore) return this.#readEnd(end());
      if (this.#pauses) return await this.next();
      await this.#takeTurn(this.#reply);
    }
    return END;
  }

  #open(reply: PlannedReply): void {
    this.#reply = reply;
    if (reply.delayMs > 0) this.#pauses = new Pauses(reply.delayMs, this.#signal);
  }

  async #takeTurn({ pieces, isJoined }: PlannedReply): Promise<void> {
    if (pieces.outputTokens > 0) await nextTurn();
    this.#checkAborted();
    const taken: Delta[] = [];
    for (let i = 0; i < PIECES_PER_TURN && pieces.hasMore; i++) taken.push(...pieces.take());
    this.#ready = isJoined ? joinedOf(taken) : taken.values();
  }

  #readEnd(value: UpstreamEnd): Result {
    this.#close();
    return { done: false, value };
  }

  #checkAborted(): void {
    if (this.#signal.aborted) this.#onFailure(this.#signal.reason);
  }

  #close(): void {
    this.#isEnded = true;
    this.#pauses?.close();
    this.#pauses = undefined;
  }
}

function joinedOf(deltas: readonly Delta[]): Iterator<Delta, unknown> {
  const joined = new UnreadDeltas();
  for (const delta of deltas) joined.append(delta);
  return joined.takeAll();
}

type Group = { readonly endsAtMs: number; readonly timer: NodeJS.Timeout; readonly waiting: Set<() => void> };

/** By the millisecond of performance.now() in which they end. */
const groups = new Map<number, Group>();

/**
 * Equal pauses between the pieces of one reply. Pauses of all replies that end in the same millisecond share one
 * timer: Node enters and leaves its queue of promises for each timer, which takes as long as the rest of the sandbox.
 * All pauses of a reply share one listener, because one per piece would use more memory than the rest of the stream.
 */
export class Pauses {
  readonly #ms: number;
  readonly #signal: AbortSignal;
  #group: Group | undefined;
  #resolve: () => void = () => undefined;
  #fail: (reason: unknown) => void = () => undefined;

  constructor(ms: number, signal: AbortSignal) {
    this.#ms = ms;
    this.#signal = signal;
    signal.addEventListener("abort", this.#abort);
  }

  /** Throws the signal's reason when the signal aborts. */
  next(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#fail = reject;
      if (this.#signal.aborted) {
        this.#abort();
        return;
      }
      this.#group = groupAfter(this.#ms);
      this.#group.waiting.add(this.#end);
    });
  }

  /** Ends a pause at once. */
  close(): void {
    this.#leaveGroup();
    this.#signal.removeEventListener("abort", this.#abort);
    this.#resolve();
  }

  readonly #end = () => this.#resolve();

  readonly #abort = () => {
    this.#leaveGroup();
    this.#fail(this.#signal.reason);
  };

  /** The last one stops the timer: pauses can be long. */
  #leaveGroup(): void {
    const group = this.#group;
    if (!group?.waiting.delete(this.#end) || group.waiting.size > 0) return;
    clearTimeout(group.timer);
    groups.delete(group.endsAtMs);
  }
}

function groupAfter(ms: number): Group {
  const endsAtMs = Math.ceil(performance.now()) + ms;
  const known = groups.get(endsAtMs);
  if (known) return known;
  const waiting = new Set<() => void>();
  const timer = setTimeout(() => {
    groups.delete(endsAtMs);
    for (const end of waiting) end();
    waiting.clear();
  }, ms);
  const group = { endsAtMs, timer, waiting };
  groups.set(endsAtMs, group);
  return group;
}
