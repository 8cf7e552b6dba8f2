import type { Delta } from "../../domain/output.ts";
import type { Segment } from "./sandbox-plan.ts";
import { tokensWithin } from "./sandbox-text.ts";
import { StopTexts } from "./stop-texts.ts";

/** Makes the deltas of one segment from its groups of tokens. */
export type SegmentWriter = {
  write(piece: string): Delta | undefined;
  /** What follows the last group; a segment that max_tokens cuts is not whole. */
  end(isWhole: boolean): Delta | undefined;
  /** The stop text that ended the reply, and the tokens before it; undefined if none did. */
  stopped(): { readonly stop: string; readonly tokens: number } | undefined;
};

export function writerOf(segment: Segment, stop: readonly string[]): SegmentWriter {
  const { part } = segment;
  switch (part.kind) {
    case "text":
      return new TextWriter(segment, stop);
    case "reasoning":
      return {
        write: (text) => (text === "" ? undefined : { kind: "reasoning", reasoning: { ...UNSIGNED, text } }),
        end: (isWhole) =>
          isWhole ? { kind: "reasoning", reasoning: { ...UNSIGNED, signature: part.signature } } : undefined,
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
    return stop === undefined
      ? undefined
      : { stop, tokens: tokensWithin(this.#segment.tokens(), this.#characters) };
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
