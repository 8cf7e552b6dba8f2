import type { Delta, FinishReason } from "../../domain/output.ts";
import type { Prompt } from "../../domain/prompt.ts";
import { type NextToken, type Plan, type Segment, tokensWithin } from "./plan.ts";

const PIECE_TOKENS = 4;

/** The segment that is being sent. */
type Open = {
  readonly segment: Segment;
  readonly nextToken: NextToken;
  readonly writer: SegmentWriter;
  /** Its tokens within max_tokens. */
  readonly count: number;
};

/** The pieces of a planned reply within max_tokens and the stop texts, and what it used at its end. */
export class SandboxPieces {
  readonly #plan: Plan;
  readonly #stop: readonly string[];
  #position = 0;
  #open: Open | undefined;
  /** Tokens of the open segment that were sent. */
  #sent = 0;
  #tokensLeft: number;
  #produced = 0;
  #isFailing = false;
  outputTokens = 0;
  reasoningTokens = 0;
  finishReason: FinishReason = "stop";
  stopSequence: string | undefined;

  constructor(plan: Plan, { maxTokens, stop }: Pick<Prompt, "maxTokens" | "stop">) {
    this.#plan = plan;
    this.#tokensLeft = maxTokens;
    this.#stop = stop;
    this.#openNext();
  }

  /** Whether the reply has another group of tokens. */
  get hasMore(): boolean {
    return this.#open !== undefined && !this.#isFailing;
  }

  get hasStarted(): boolean {
    return this.#produced > 0;
  }

  /** Whether the reply ends with the failure that the prompt requests. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** The deltas of the next group of tokens, and those that follow the last group of its segment. */
  take(): readonly Delta[] {
    const open = this.#open;
    if (!open) return [];
    const { writer, segment, count, nextToken } = open;
    const earlierTokens = this.outputTokens - this.#sent;
    const delta = writer.write(this.#piece(nextToken, count));
    const stopped = writer.stopped();
    if (stopped) {
      this.outputTokens = earlierTokens + stopped.tokens;
      this.stopSequence = stopped.stop;
      this.#open = undefined;
      return listOf(delta);
    }
    this.#isFailing = this.#mustFail();
    if (this.#isFailing || this.#sent < count) return listOf(delta);
    this.#closeSegment(segment, count);
    return listOf(delta, writer.end(count === segment.count));
  }

  #piece(nextToken: NextToken, count: number): string {
    let piece = "";
    const end = Math.min(count, this.#sent + PIECE_TOKENS);
    while (this.#sent < end && !this.#mustFail()) {
      piece += nextToken();
      this.#sent++;
      this.#produced++;
      this.outputTokens++;
      this.#tokensLeft--;
    }
    return piece;
  }

  #closeSegment({ part, count: planned }: Segment, count: number): void {
    if (part.kind === "reasoning") this.reasoningTokens += count;
    else if (part.kind === "tool_call") this.finishReason = "tool_calls";
    this.#open = undefined;
    if (count < planned) this.finishReason = "length";
    else this.#openNext();
  }

  #openNext(): void {
    const segment = this.#plan.segments[this.#position++];
    if (!segment) return;
    const count = Math.min(segment.count, this.#tokensLeft);
    this.#sent = 0;
    if (count === 0) this.#closeSegment(segment, count);
    else this.#open = { segment, count, nextToken: segment.tokens(), writer: writerOf(segment, this.#stop) };
  }

  #mustFail(): boolean {
    return this.#produced === this.#plan.directive.fail_after;
  }
}

function listOf(first: Delta | undefined, second?: Delta): readonly Delta[] {
  const list = first ? [first] : [];
  if (second) list.push(second);
  return list;
}

/** Makes the deltas of one segment from its groups of tokens. */
type SegmentWriter = {
  write(piece: string): Delta | undefined;
  /** What follows the last group; a segment that max_tokens cuts is not whole. */
  end(isWhole: boolean): Delta | undefined;
  /** The stop text that ended the reply, and the tokens before it; undefined if none did. */
  stopped(): { readonly stop: string; readonly tokens: number } | undefined;
};

function writerOf(segment: Segment, stop: readonly string[]): SegmentWriter {
  const { part } = segment;
  switch (part.kind) {
    case "text":
      return new TextWriter(segment, stop);
    case "reasoning":
      return {
        write: (text) => (text === "" ? undefined : { kind: "reasoning", reasoning: { ...UNSIGNED, text } }),
        end: (isWhole) => (isWhole ? { kind: "reasoning", reasoning: { ...UNSIGNED, signature: part.signature } } : undefined),
        stopped: () => undefined,
      };
    case "tool_call":
      return toolCallWriter(part);
  }
}

const UNSIGNED = { text: "", signature: undefined, encrypted: undefined };

class TextWriter implements SegmentWriter {
  readonly #segment: Segment;
  readonly #stops: StopTexts;
  #characters = 0;

  constructor(segment: Segment, stop: readonly string[]) {
    this.#segment = segment;
    this.#stops = new StopTexts(stop);
  }

  write(piece: string): Delta | undefined {
    const text = this.#stops.filter(piece);
    this.#characters += text.length;
    return text === "" ? undefined : { kind: "text", text };
  }

  end(): Delta | undefined {
    const text = this.#stops.flush();
    return text === "" ? undefined : { kind: "text", text };
  }

  stopped(): { readonly stop: string; readonly tokens: number } | undefined {
    const stop = this.#stops.found;
    return stop === undefined ? undefined : { stop, tokens: tokensWithin(this.#segment.tokens(), this.#characters) };
  }
}

/** Stop texts do not apply to the arguments. */
function toolCallWriter({ index, id, name }: Extract<Segment["part"], { kind: "tool_call" }>): SegmentWriter {
  let head = { index, id, name };
  return {
    write: (piece) => {
      if (piece === "") return undefined;
      const toolCall = { ...head, arguments: piece };
      head = { index, id: "", name: "" };
      return { kind: "tool_call", toolCall };
    },
    end: () => undefined,
    stopped: () => undefined,
  };
}

/**
 * Ends a reply before its first stop text, even if the stop text spans pieces. Text that may be the start of
 * a stop text is held back until the next pieces decide.
 */
export class StopTexts {
  readonly #texts: readonly string[];
  readonly #longest: number;
  #kept = "";
  #found: string | undefined;

  constructor(texts: readonly string[]) {
    this.#texts = texts.filter((text) => text !== "");
    this.#longest = this.#texts.reduce((longest, { length }) => Math.max(longest, length), 0);
  }

  /** The stop text that was found; later pieces are ignored. */
  get found(): string | undefined {
    return this.#found;
  }

  /** Takes a piece and returns the text to pass on, which may be empty. */
  filter(piece: string): string {
    if (this.#found !== undefined) return "";
    if (this.#longest === 0) return piece;
    const text = this.#kept + piece;
    const first = this.#firstStop(text);
    this.#found = first?.stop;
    const end = first?.start ?? this.#possibleStart(text);
    this.#kept = first ? "" : text.slice(end);
    return text.slice(0, end);
  }

  /** Called at the end of the reply: returns the text that was held back. */
  flush(): string {
    const kept = this.#kept;
    this.#kept = "";
    return kept;
  }

  /**
   * The stop text that is complete first. This rule makes the result independent of the piece sizes.
   */
  #firstStop(text: string): { readonly stop: string; readonly start: number } | undefined {
    let first: { readonly stop: string; readonly start: number; readonly end: number } | undefined;
    for (const stop of this.#texts) {
      const start = text.indexOf(stop);
      const end = start + stop.length;
      if (start < 0) continue;
      if (!first || end < first.end || (end === first.end && start < first.start)) first = { stop, start, end };
    }
    return first;
  }

  /** Start of the longest suffix that is a prefix of a stop text; the text's length if there is none. */
  #possibleStart(text: string): number {
    for (let start = Math.max(0, text.length - this.#longest + 1); start < text.length; start++) {
      const end = text.slice(start);
      if (this.#texts.some((stop) => stop.startsWith(end))) return start;
    }
    return text.length;
  }
}
