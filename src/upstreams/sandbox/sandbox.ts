import { setImmediate as nextTurn } from "node:timers/promises";
import type { SandboxSettings } from "../../domain/model.ts";
import type { Prompt } from "../../domain/prompt.ts";
import { type PromptInput, textsOfMessage } from "../../domain/prompt-texts.ts";
import { usageOf } from "../../domain/usage.ts";
import { Progress } from "../progress.ts";
import type { Upstream, UpstreamEvent } from "../upstream.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import { Pauses } from "./pauses.ts";
import { directiveOf } from "./sandbox-directive.ts";
import { replyTokens, seedOf, tokensWithin, usualTokens } from "./sandbox-text.ts";
import { StopTexts } from "./stop-texts.ts";

type SandboxOptions = {
  readonly settings: SandboxSettings;
  readonly countPrompt: (prompt: PromptInput, signal: AbortSignal) => Promise<number>;
};

const PIECE_TOKENS = 4;
/**
 * Pieces between two yields to the event loop; without this, a reply with no delay would block other calls.
 */
const PIECES_PER_TURN = 64;

/** A model without network or cost: equal prompts get equal replies, with exact token counts. */
export class SandboxUpstream implements Upstream {
  readonly name = "sandbox";
  readonly #options: SandboxOptions;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  async *generate(
    prompt: Prompt,
    signal: AbortSignal,
    progress = new Progress(),
  ): AsyncGenerator<UpstreamEvent, void, undefined> {
    progress.wasSent = true;
    const { settings, countPrompt } = this.#options;
    const inputTokens = await countPrompt(prompt, signal);
    const directive = directiveOf(prompt);
    const seed = seedOf(prompt.messages.flatMap((message) => [message.role, ...textsOfMessage(message)]));
    const wanted = directive.tokens ?? usualTokens(seed);
    const count = Math.min(wanted, prompt.maxTokens);
    const delayMs = directive.delayMs ?? settings.delayMs;

    const stops = new StopTexts(prompt.stop);
    const tokens = replyTokens(seed);
    const pauses = delayMs > 0 ? new Pauses(delayMs, signal) : undefined;
    let characters = 0;
    let pieces = 0;
    try {
      for (let made = 0; made < count && !stops.stopped; ) {
        if (pauses) await pauses.next();
        else if (pieces++ % PIECES_PER_TURN === PIECES_PER_TURN - 1) await nextTurn();
        signal.throwIfAborted();
        let piece = "";
        for (const end = Math.min(count, made + PIECE_TOKENS); made < end; made++) {
          if (made === directive.failAfter) break;
          piece += tokens.next().value;
        }
        const content = stops.filter(piece);
        characters += content.length;
        if (content !== "") yield { kind: "text", text: content };
        if (made === directive.failAfter && !stops.stopped) throw requestedFailure();
      }
    } finally {
      pauses?.close();
    }
    const rest = stops.flush();
    characters += rest.length;
    if (rest !== "") yield { kind: "text", text: rest };
    yield {
      kind: "done",
      finishReason: !stops.stopped && count < wanted ? "length" : "stop",
      usage: usageOf({ inputTokens, outputTokens: stops.stopped ? tokensWithin(seed, characters) : count }),
    };
  }

  async close(): Promise<void> {}
}

/** A failure that does not count against the sandbox's health and is not retried. */
function requestedFailure(): UpstreamFailure {
  return new UpstreamFailure("rejected", "the prompt contains a directive to fail");
}
