import { MAX_MESSAGE_CHARACTERS, MAX_REASONING_BLOCKS } from "../../domain/conversation.ts";
import type { Delta, FinishReason, ToolCallDelta } from "../../domain/output.ts";
import type { Reasoning } from "../../domain/prompt.ts";
import type { Usage } from "../../domain/usage.ts";
import type { UsageReport } from "../progress.ts";
import { UnreadDeltas } from "../unread-deltas.ts";
import type { UpstreamEvent } from "../upstream.ts";
import { exceedsMaxTokens, maxOpaqueChars, maxReplyChars } from "./response-limits.ts";
import { WholeCharacters } from "./whole-characters.ts";

/** A reply is open until exactly one of the other states; only an abort changes those. */
type State =
  | { readonly kind: "open" }
  /** The upstream signalled the end of the reply, or exceeded max_tokens or a limit of messages ("cut"). */
  | { readonly kind: "complete" | "cut" }
  | { readonly kind: "failed"; readonly error: unknown };

const OPEN: State = { kind: "open" };
const COMPLETE: State = { kind: "complete" };
const CUT: State = { kind: "cut" };

/** The received, unread part of a reply. */
export class ReplyBuffer {
  readonly #maxTokens: number;
  #state: State = OPEN;
  readonly #unread = new UnreadDeltas();
  readonly #text = new WholeCharacters();
  readonly #reasoning = new WholeCharacters();
  /** By the index of the call. */
  readonly #arguments = new Map<number, WholeCharacters>();
  #pieces = 0;
  #chars = 0;
  #opaqueChars = 0;
  #reasoningBlocks = 0;
  #isBlockOpen = false;
  #hasToolCalls = false;
  #finishReason: FinishReason | undefined;
  #usage: UsageReport | undefined;
  #startUsage: Usage | undefined;
  #vectors: readonly Float32Array[] | undefined;
  #wakeReader: (() => void) | undefined;

  constructor(maxTokens: number) {
    this.#maxTokens = maxTokens;
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
    const piece = this.#text.next(part);
    if (piece === "") return;
    const room = this.#room();
    const isCut = this.#measure(piece.length);
    this.#unread.appendText(piece.length > room ? truncate(piece, room) : piece);
    if (isCut) this.cut();
  }

  /** Ends a reply at a limit. The output before the limit is delivered and charged. */
  cut(): void {
    if (this.#state === OPEN) this.#state = CUT;
  }

  /** A part of a reasoning block; its text is appended to that of the part before, if that did not end a block. */
  appendReasoning(reasoning: Reasoning): void {
    if (this.#state !== OPEN) return;
    const { signature = "", encrypted = "" } = reasoning;
    const text = reasoning.text === "" ? "" : this.#reasoning.next(reasoning.text);
    const opaqueChars = signature.length + encrypted.length;
    if (text.length + opaqueChars === 0) return;
    this.#opaqueChars += opaqueChars;
    if (!this.#isBlockOpen) this.#reasoningBlocks++;
    this.#isBlockOpen = opaqueChars === 0;
    const isCut = text !== "" && this.#measure(text.length);
    if (isCut || this.#isOpaqueTooLong()) this.cut();
    else this.#unread.append({ kind: "reasoning", reasoning: { ...reasoning, text } });
  }

  appendToolCall(toolCall: ToolCallDelta): void {
    if (this.#state !== OPEN) return;
    this.#hasToolCalls = true;
    const { index } = toolCall;
    const id = toolCall.id.toWellFormed();
    const name = toolCall.name.toWellFormed();
    const text = this.#argumentsOf(index).next(toolCall.arguments);
    if (id === "" && name === "" && text === "") return;
    if (this.#measure(id.length + name.length + text.length)) this.cut();
    else this.#unread.append({ kind: "tool_call", toolCall: { index, id, name, arguments: text } });
  }

  setFinishReason(reason: FinishReason): void {
    if (this.#state === OPEN) this.#finishReason = reason;
  }

  /** The usage at the start of a reply. It counts only if the reply does not end. */
  setStartUsage(usage: Usage | undefined): void {
    if (this.#state === OPEN) this.#startUsage = usage;
  }

  /** It is final if the finish reason was set before. */
  setUsage(usage: Usage | undefined): void {
    if (this.#state === OPEN && usage) this.#usage = { usage, isFinal: this.#finishReason !== undefined };
  }

  setVectors(vectors: readonly Float32Array[]): void {
    if (this.#state === OPEN) this.#vectors = vectors;
  }

  /** Called when the upstream signals the end of the reply. */
  complete(): void {
    if (this.#state === OPEN) this.#state = COMPLETE;
  }

  /** Called when nothing more can be read. After a finish reason, the reply counts as complete. */
  fail(error: unknown): void {
    if (this.#state !== OPEN) return;
    this.#state = this.#finishReason === undefined ? { kind: "failed", error } : COMPLETE;
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
    if (this.#unread.isEmpty && this.#state === OPEN) return;
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }

  /** The next event, or undefined if there is none yet. Throws the failure after the pieces have been read. */
  nextEvent(): UpstreamEvent | undefined {
    const delta: Delta | undefined = this.#unread.take();
    if (delta) return delta;
    const state = this.#state;
    switch (state.kind) {
      case "open":
        return undefined;
      case "complete":
        return this.#end();
      case "cut":
        // The reported usage, if any, may include tokens beyond the limit.
        return { kind: "done", finishReason: "length", usage: undefined };
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

  /** Some servers report "stop" for a reply with tool calls. */
  #endReason(): FinishReason {
    const reason = this.#finishReason ?? "stop";
    if (reason !== "stop" && reason !== "tool_calls") return reason;
    return this.#hasToolCalls ? "tool_calls" : "stop";
  }

  #end(): UpstreamEvent {
    const end = { kind: "done", finishReason: this.#endReason(), usage: this.#usage?.usage } as const;
    return this.#vectors ? { ...end, vectors: this.#vectors } : end;
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
      this.#room() < 0 ||
      this.#opaqueChars > maxOpaqueChars(this.#maxTokens) ||
      this.#reasoningBlocks > MAX_REASONING_BLOCKS
    );
  }

  /** Counts a piece; true if the reply exceeds its limit with it. */
  #measure(length: number): boolean {
    const isTooLong = length > this.#room();
    this.#pieces++;
    this.#chars += length;
    return isTooLong || exceedsMaxTokens(this.#maxTokens, this.#pieces, this.#chars);
  }
}

/** Does not split a surrogate pair. */
function truncate(piece: string, length: number): string {
  const last = piece.charCodeAt(length - 1);
  return piece.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
