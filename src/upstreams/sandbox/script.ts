import { jsonIfValid } from "../../domain/json.ts";
import type { PromptMessage } from "../../domain/prompt.ts";
import { textsOfMessage } from "../../domain/prompt-texts.ts";

/** One reply of a script. */
export type Turn = {
  readonly reasoning?: string;
  readonly text?: string;
  /** Arguments are an object, or a text that is sent as it is. */
  readonly calls?: readonly { readonly name: string; readonly arguments?: object | string }[];
};

const OPENING = "[[script=";
/** Only read where a text has the opening, so that long texts cost nothing. */
const SCRIPT = /\[\[script=([\w-]{1,262144})={0,2}\]\]/y;
const MAX_TURNS = 1_000;
const MAX_CALLS = 16;

/**
 * The turn of the last script in the messages: its number is the count of the assistant's turns so far, and the last turn is repeated.
 * Undefined without a script. Text in any other form is part of the prompt.
 */
export function scriptedTurnOf(messages: readonly PromptMessage[]): Turn | undefined {
  for (const message of messages.toReversed()) {
    for (const text of textsOfMessage(message).toReversed()) {
      const turns = scriptIn(text);
      if (turns) return turns[Math.min(countTurns(messages), turns.length - 1)];
    }
  }
  return undefined;
}

function scriptIn(text: string): readonly Turn[] | undefined {
  SCRIPT.lastIndex = text.indexOf(OPENING);
  const encoded = SCRIPT.lastIndex < 0 ? undefined : SCRIPT.exec(text)?.[1];
  if (encoded === undefined) return undefined;
  const turns = jsonIfValid(Buffer.from(encoded, "base64url"));
  const isScript = Array.isArray(turns) && turns.length > 0 && turns.length <= MAX_TURNS && turns.every(isTurn);
  return isScript ? turns : undefined;
}

function isTurn(value: unknown): value is Turn {
  const { reasoning, text, calls, ...others } = Object(value) as Record<string, unknown>;
  const isText = (part: unknown) => part === undefined || typeof part === "string";
  const areCalls = calls === undefined || (Array.isArray(calls) && calls.length <= MAX_CALLS && calls.every(isCall));
  return isText(reasoning) && isText(text) && areCalls && Object.keys(others).length === 0;
}

function isCall(value: unknown): boolean {
  const { name, arguments: given = {} } = Object(value) as Record<string, unknown>;
  return typeof name === "string" && name !== "" && (typeof given === "string" || (typeof given === "object" && given !== null));
}

/** A reply can be several messages, such as a text and the calls after it. */
function countTurns(messages: readonly PromptMessage[]): number {
  return messages.filter(({ role }, i) => role === "assistant" && messages[i - 1]?.role !== "assistant").length;
}
