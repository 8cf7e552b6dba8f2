import { type Delta, type FinishReason, type ToolCallDelta, UnreadDeltas } from "../../domain/output.ts";
import { outputTokensOf, type Usage } from "../../domain/price.ts";
import { MAX_MESSAGE_CHARACTERS, MAX_REASONING_BLOCKS, type Reasoning } from "../../domain/prompt.ts";
import { codePointEnd } from "../../domain/text.ts";
import type { UpstreamEvent, UsageReport } from "../upstream.ts";
import { exceedsMaxTokens, maxOpaqueChars, maxReplyChars } from "./response-limits.ts";

/** Only an abort changes "complete" and "failed". */
type State =
  | { readonly kind: "open" }
  /** The content has reached max_tokens or a limit of messages. The rest is read only for the usage. */
  | { readonly kind: "cut" }
  /** The upstream signalled the end of the reply, or nothing more is read of a reply that was cut. */
  | { readonly kind: "complete" }
  | { readonly kind: "failed"; readonly error: unknown };

const OPEN: State = { kind: "open" };
const COMPLETE: State = { kind: "complete" };
const CUT: State = { kind: "cut" };

/** Units of UTF-16 have at most three bytes, and tokens have at least one. */
const MAX_TOKENS_PER_UNIT = 3;

/** The start of a text that has at most this many tokens, and their number. */
export type FirstTokens = (text: string, maxTokens: number) => { readonly text: string; readonly tokens: number };

/** The received, unread part of a reply. */
export class ReplyBuffer {
  readonly #maxTokens: number;
  readonly #firstTokens: FirstTokens | undefined;
  #state: State = OPEN;
  #isCut = false;
  #unread = new UnreadDeltas();
  readonly #text = new WholeCharacters();
  readonly #reasoning = new WholeCharacters();
  readonly #arguments = new Map<number, WholeCharacters>();
  #pieces = 0;
  #chars = 0;
  #opaqueChars = 0;
  #reasoningBlocks = 0;
  #isBlockOpen = false;
  #hasToolCalls = false;
  #finishReason: FinishReason | undefined;
  #stopSequence: string | null | undefined;
  #usage: UsageReport | undefined;
  #startUsage: Usage | undefined;
  #vectors: readonly Float32Array[] | undefined;
  #wakeReader: (() => void) | undefined;

  /**
   * `firstTokens` is given if the upstream has a higher limit than `maxTokens`: then the reply is read when it is
   * complete, because its usage decides whether it has too many tokens.
   */
  constructor(maxTokens: number, firstTokens?: FirstTokens) {
    this.#maxTokens = maxTokens;
    this.#firstTokens = firstTokens;
  }

  get state(): State["kind"] {
    return this.#state.kind;
  }

  get report(): UsageReport | undefined {
    return this.#usage ?? (this.#startUsage && { usage: this.#startUsage, isFinal: false });
  }

  /** Ends a reply that exceeds max_tokens, as a server that enforces the limit does. */
  append(part: string): void {
    if (part === "" || this.#state !== OPEN) return;
    this.#unread.appendText(this.#withinRoom(this.#text.next(part)));
  }

  /** Ends the content at a limit. The output before the limit is delivered and charged. */
  cut(): void {
    if (this.#state !== OPEN) return;
    this.#state = CUT;
    this.#isCut = true;
  }

  /** A part of a reasoning block; its text is appended to that of the part before, if that did not end a block. */
  appendReasoning(reasoning: Reasoning): void {
    if (this.#state !== OPEN) return;
    const { signature = "", encrypted = "" } = reasoning;
    const piece = reasoning.text === "" ? "" : this.#reasoning.next(reasoning.text);
    const opaqueChars = signature.length + encrypted.length;
    if (piece.length + opaqueChars === 0) return;
    if (!this.#isBlockOpen) this.#reasoningBlocks++;
    this.#isBlockOpen = opaqueChars === 0;
    this.#opaqueChars += opaqueChars;
    if (this.#isOpaqueTooLong()) {
      this.cut();
      return;
    }
    const text = this.#withinRoom(piece);
    // A signature is valid only for the whole text.
    if (text.length === piece.length) this.#unread.append({ kind: "reasoning", reasoning: { ...reasoning, text } });
    else if (text !== "") this.#unread.append(reasoningDelta(text));
  }

  appendToolCall(toolCall: ToolCallDelta): void {
    if (this.#state !== OPEN) return;
    const { index } = toolCall;
    const id = toolCall.id.toWellFormed();
    const name = toolCall.name.toWellFormed();
    const piece = this.#argumentsOf(index).next(toolCall.arguments);
    const head = id.length + name.length;
    if (head + piece.length === 0) return;
    if (head > this.#room()) {
      this.cut();
      return;
    }
    this.#hasToolCalls = true;
    const text = this.#withinRoom(piece, head);
    if (head + text.length > 0) this.#unread.append({ kind: "tool_call", toolCall: { index, id, name, arguments: text } });
  }

  /** The stop sequence is undefined if the upstream does not report one, and null if it does not report which. */
  setFinishReason(reason: FinishReason, stopSequence?: string | null): void {
    if (this.#isEnded()) return;
    this.#finishReason = reason;
    this.#stopSequence = stopSequence;
  }

  /** The usage at the start of a reply. It counts only if the reply does not end. */
  setStartUsage(usage: Usage | undefined): void {
    if (!this.#isEnded()) this.#startUsage = usage;
  }

  /** It is final if the finish reason was set before. */
  setUsage(usage: Usage | undefined): void {
    if (!this.#isEnded() && usage) this.#usage = { usage, isFinal: this.#finishReason !== undefined };
  }

  setVectors(vectors: readonly Float32Array[]): void {
    if (this.#state === OPEN) this.#vectors = vectors;
  }

  /** Called when the upstream signals the end of the reply. */
  complete(): void {
    if (this.#isEnded()) return;
    this.#state = COMPLETE;
    const isWithin = this.#usage?.isFinal === true && outputTokensOf(this.#usage.usage) <= this.#maxTokens;
    if (this.#firstTokens && !isWithin) this.#cutAtMaxTokens(this.#firstTokens);
  }

  /** Called when nothing more can be read. After a finish reason or a cut, the reply counts as complete. */
  fail(error: unknown): void {
    if (this.#finishReason !== undefined || this.#isCut) this.complete();
    else if (!this.#isEnded()) this.#state = { kind: "failed", error };
  }

  /** Called when the call is aborted, in any state. Returns the unread texts. */
  abort(reason: unknown): string {
    const unread = this.#unread.takeTexts();
    this.#state = { kind: "failed", error: reason };
    this.wakeReader();
    return unread;
  }

  /** Called once per chunk, not once per piece. */
  wakeReader(): void {
    if (!this.#isEnded() && (this.#unread.isEmpty || this.#firstTokens)) return;
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }

  /** The next event, or undefined if there is none yet. Throws the failure after the pieces have been read. */
  nextEvent(): UpstreamEvent | undefined {
    if (this.#firstTokens && !this.#isEnded()) return undefined;
    const delta: Delta | undefined = this.#unread.take();
    if (delta) return delta;
    const state = this.#state;
    switch (state.kind) {
      case "open":
      case "cut":
        return undefined;
      case "complete":
        return this.#end();
      case "failed":
        throw state.error;
    }
  }

  /** Resolves when there may be a next event. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeReader = resolve;
    });
  }

  #isEnded(): boolean {
    return this.#state !== OPEN && this.#state !== CUT;
  }

  /** Some servers report "stop" for a reply with tool calls. */
  #endReason(): FinishReason {
    if (this.#isCut) return "length";
    const reason = this.#finishReason ?? "stop";
    if (reason !== "stop" && reason !== "tool_calls") return reason;
    return this.#hasToolCalls ? "tool_calls" : "stop";
  }

  #end(): UpstreamEvent {
    const usage = this.#isCut ? this.#usageUntilCut() : this.#usage?.usage;
    const end = {
      kind: "done",
      finishReason: this.#endReason(),
      usage,
      stopSequence: this.#stopSequence,
    } as const;
    return this.#vectors ? { ...end, vectors: this.#vectors } : end;
  }

  /** The upstream also reports the output after the cut: only what the output before it can have counts. */
  #usageUntilCut(): Usage | undefined {
    const report = this.#usage;
    if (!report?.isFinal) return undefined;
    const maxOutput = (this.#chars + this.#opaqueChars) * MAX_TOKENS_PER_UNIT;
    return { ...report.usage, output: Math.min(report.usage.output, maxOutput) };
  }

  /** The reported tokens, or those of the texts if none are reported, decide whether the reply is cut. */
  #cutAtMaxTokens(firstTokens: FirstTokens): void {
    const received = this.#unread;
    this.#unread = new UnreadDeltas();
    this.#isCut ||= this.#usage?.isFinal === true;
    let left = this.#maxTokens;
    for (const delta of received.takeAll()) {
      const name = delta.kind === "tool_call" ? firstTokens(delta.toolCall.name, left).tokens : 0;
      const whole = textOf(delta);
      const { text, tokens } = firstTokens(whole, left - name);
      left -= name + tokens;
      if (text.length === whole.length) this.#unread.append(delta);
      else {
        this.#isCut = true;
        if (text !== "" || name > 0) this.#unread.append(withText(delta, text));
        return;
      }
    }
  }

  #argumentsOf(index: number): WholeCharacters {
    const known = this.#arguments.get(index) ?? new WholeCharacters();
    this.#arguments.set(index, known);
    return known;
  }

  #room(): number {
    const max = Math.min(maxReplyChars(this.#maxTokens), MAX_MESSAGE_CHARACTERS - this.#opaqueChars);
    return max - this.#chars;
  }

  #isOpaqueTooLong(): boolean {
    return (
      this.#room() < 0 || this.#opaqueChars > maxOpaqueChars(this.#maxTokens) || this.#reasoningBlocks > MAX_REASONING_BLOCKS
    );
  }

  /** Counts a piece, and cuts the reply at its limit. Returns the part of the text within the limit. */
  #withinRoom(text: string, headLength = 0): string {
    const room = this.#room() - headLength;
    const within = text.slice(0, codePointEnd(text, room));
    this.#pieces++;
    this.#chars += headLength + within.length;
    const isTooLong = within.length < text.length;
    if (isTooLong || exceedsMaxTokens(this.#maxTokens, this.#pieces, this.#chars)) this.cut();
    return within;
  }
}

function reasoningDelta(text: string): Delta {
  return { kind: "reasoning", reasoning: { text, signature: undefined, encrypted: undefined } };
}

function textOf(delta: Delta): string {
  switch (delta.kind) {
    case "text":
      return delta.text;
    case "reasoning":
      return delta.reasoning.text;
    case "tool_call":
      return delta.toolCall.arguments;
  }
}

function withText(delta: Delta, text: string): Delta {
  switch (delta.kind) {
    case "text":
      return { kind: "text", text };
    case "reasoning":
      return reasoningDelta(text);
    case "tool_call":
      return { kind: "tool_call", toolCall: { ...delta.toolCall, arguments: text } };
  }
}

/**
 * Joins a character that an upstream splits between two pieces of a text: in JSON, each half of a surrogate pair can be
 * an escape of its own. gRPC cannot send a half, and requests with one are refused, so callers could not send it back.
 */
class WholeCharacters {
  #half = "";

  /** The piece up to its last whole character. A half without the other one becomes U+FFFD; a last one is dropped. */
  next(piece: string): string {
    const text = this.#half + piece;
    const isSplit = (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
    this.#half = isSplit ? text.slice(-1) : "";
    return (isSplit ? text.slice(0, -1) : text).toWellFormed();
  }
}
