import { jsonIfValid } from "../../domain/json.ts";
import { type Prompt, type PromptMessage, type ReasoningEffort, type Tool, textsOfMessage } from "../../domain/prompt.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import { isObject, valueOfSchema, WorkBudget } from "./schema-value.ts";

/** A part of a reply, with the tokens it has if nothing cuts it. */
export type Segment = {
  readonly part:
    | { readonly kind: "text" }
    | { readonly kind: "reasoning"; readonly signature: string }
    | { readonly kind: "tool_call"; readonly index: number; readonly id: string; readonly name: string };
  readonly tokens: () => NextToken;
  readonly count: number;
};

/** What the sandbox does for a prompt. */
export type Plan = { readonly directive: Directive; readonly segments: readonly Segment[] };

const REASONING_TOKENS: Readonly<Record<ReasoningEffort, number>> = {
  none: 0,
  minimal: 8,
  low: 16,
  medium: 32,
  high: 64,
};

/** JSON and the texts of a script have one token for each of these. */
const GIVEN_TOKEN = /.{1,4}/gsu;

export function planOf(prompt: Prompt): Plan {
  const { messages, options } = prompt;
  const lastUser = messages.findLastIndex(({ role }) => role === "user");
  const directive = directiveOf(messages[lastUser]);
  const seed = seedOf(messages.flatMap((message) => [message.role, ...textsOfMessage(message)]));
  const turn = scriptedTurnOf(messages);
  if (turn) return { directive, segments: scriptedSegments(turn, seed) };
  const segments: Segment[] = [];
  const reasoning = directive.reasoning ?? REASONING_TOKENS[options.reasoningEffort ?? "none"];
  if (reasoning > 0) {
    const tokens = () => replyTokens(~seed >>> 0);
    segments.push({ part: reasoningPart(seed), tokens, count: reasoning });
  }
  const tools = toolsToCall(prompt, directive, calledSince(messages, lastUser));
  if (tools.length === 0 || directive.tokens !== undefined) segments.push(textSegment(prompt, directive, seed));
  if (tools.length > 0) segments.push(...callSegments(tools, seed));
  return { directive, segments };
}

function reasoningPart(seed: number): Segment["part"] {
  return { kind: "reasoning", signature: `sandbox_${hexOf(seed)}` };
}

/** A turn without anything is an empty text. */
function scriptedSegments({ reasoning = "", text = "", calls = [] }: Turn, seed: number): Segment[] {
  const segments: Segment[] = reasoning === "" ? [] : [{ part: reasoningPart(seed), ...tokensOfText(reasoning) }];
  if (text !== "" || calls.length === 0) segments.push({ part: { kind: "text" }, ...tokensOfText(text) });
  const made = calls.map(({ name, arguments: given = {} }, index): Segment => {
    const args = typeof given === "string" ? given : JSON.stringify(given);
    return { part: { kind: "tool_call", index, id: callIdOf(seed, index), name }, ...tokensOfText(args) };
  });
  return [...segments, ...made];
}

function callIdOf(seed: number, index: number): string {
  return `call_${hexOf(seed)}${index}`;
}

/** The calls share the work that making their arguments may take. */
function callSegments(tools: readonly Tool[], seed: number): Segment[] {
  const work = new WorkBudget();
  return tools.map(({ name, parameters }, index) => {
    const value = valueOfSchema(parameters ?? {}, work);
    return { part: { kind: "tool_call", index, id: callIdOf(seed, index), name }, ...jsonTokens(isObject(value) ? value : {}) };
  });
}

function calledSince(messages: readonly PromptMessage[], start: number): ReadonlySet<string> {
  const calls = messages.slice(start + 1).flatMap(({ toolCalls = [] }) => toolCalls);
  return new Set(calls.map(({ name }) => name));
}

/**
 * A choice that requires a tool, or a directive, gets calls. So that loops of agents end, a reply to results calls a
 * tool only if the choice requires one, and none for the second time.
 */
function toolsToCall({ options }: Prompt, directive: Directive, called: ReadonlySet<string>): readonly Tool[] {
  const { toolChoice, parallelToolCalls } = options;
  const tools = (options.tools ?? []).filter(({ name }) => !called.has(name));
  if (tools.length === 0 || toolChoice?.kind === "none") return [];
  const isForced = toolChoice?.kind === "required" || toolChoice?.kind === "tool";
  if (called.size > 0 && !isForced) return [];
  if (toolChoice?.kind === "tool" && called.has(toolChoice.name)) return [];
  if (!isForced && directive.tool === undefined && directive.tools === undefined) return [];
  const wanted = toolChoice?.kind === "tool" ? toolChoice.name : directive.tool;
  const named = tools.findIndex(({ name }) => name === wanted);
  if (wanted && named < 0 && !isForced) return [];
  const count = parallelToolCalls === false ? 1 : (directive.tools ?? 1);
  const first = Math.max(0, named);
  return Array.from({ length: count }, (_, i) => tools[(first + i) % tools.length] as Tool);
}

function textSegment({ options }: Prompt, directive: Directive, seed: number): Segment {
  const part = { kind: "text" } as const;
  switch (options.responseFormat?.kind) {
    case "json_schema":
      return { part, ...jsonTokens(valueOfSchema(options.responseFormat.schema)) };
    case "json":
      return { part, ...jsonTokens({ reply: Array.from({ length: usualTokens(seed) }, replyTokens(seed)).join("") }) };
    case undefined:
      return { part, tokens: () => replyTokens(seed), count: directive.tokens ?? usualTokens(seed) };
  }
}

function jsonTokens(value: unknown): Pick<Segment, "tokens" | "count"> {
  return tokensOfText(JSON.stringify(value));
}

function tokensOfText(text: string): Pick<Segment, "tokens" | "count"> {
  const tokens = text.match(GIVEN_TOKEN) ?? [];
  return { tokens: () => nextOf(tokens), count: tokens.length };
}

export function nextOf(tokens: readonly string[]): NextToken {
  let at = 0;
  return () => tokens[at++] ?? "";
}

function hexOf(seed: number): string {
  return seed.toString(16).padStart(8, "0");
}

/** Behaviour of the sandbox that a prompt can set. */
type Directive = {
  readonly tokens?: number;
  readonly delay_ms?: number;
  readonly fail_after?: number;
  /** Tokens of reasoning before the reply. */
  readonly reasoning?: number;
  /** Input tokens to report as read from a cache. */
  readonly cached?: number;
  /** Input tokens to report as written to a cache. */
  readonly cache_write?: number;
  /** How many of these to report as kept for an hour. */
  readonly cache_write_1h?: number;
  readonly tools?: number;
  /** Call the tool with this name; the first one if the name is empty. */
  readonly tool?: string;
};

const LARGEST = {
  tokens: 32_000,
  delay_ms: 10_000,
  fail_after: 32_000,
  reasoning: 32_000,
  cached: 99_999_999,
  cache_write: 99_999_999,
  cache_write_1h: 99_999_999,
  tools: 16,
} as const;

const DIRECTIVE = /^\[\[([\w.=:-]{1,150}(?: [\w.=:-]{1,150}){0,7})\]\]/;
const PART = /^(?:tool(?:=([\w.:-]{1,128}))?|([a-z_]+(?:1h)?)=(\d{1,8}))$/;

const NONE: Directive = {};

/**
 * The directive in double brackets at the start of a message, such as "[[tokens=200 delay_ms=20]]". Text in any
 * other form is part of the prompt. Agents put text parts of their own before the one of the user: the first part
 * with a directive counts.
 */
export function directiveOf(message: PromptMessage | undefined): Directive {
  if (!message) return NONE;
  for (const text of textsOfMessage(message)) {
    const inside = text.startsWith("[[") ? DIRECTIVE.exec(text)?.[1] : undefined;
    if (inside !== undefined) return directiveWithin(inside);
  }
  return NONE;
}

function directiveWithin(inside: string): Directive {
  const directive: { [name: string]: number | string } = {};
  for (const part of inside.split(" ")) {
    const [found, tool = "", name = "tool", value] = PART.exec(part) ?? [];
    if (found === undefined || Object.hasOwn(directive, name)) return NONE;
    if (value !== undefined && !(isName(name) && Number(value) <= LARGEST[name])) return NONE;
    directive[name] = value === undefined ? tool : Number(value);
  }
  return directive;
}

function isName(name: string): name is keyof typeof LARGEST {
  return Object.hasOwn(LARGEST, name);
}

/** The failure does not count against the sandbox's health and is not retried. */
export function requestedFailure(): UpstreamFailure {
  return new UpstreamFailure("rejected", "the prompt contains a directive to fail");
}

/**
 * The sandbox's text. Each word and each punctuation mark is one token; a test compares this with the
 * tokenizer.
 */
const OPENING = "This is a reply of the sandbox.";
const SENTENCES = [
  "Every charge is one row in the ledger.",
  "A key can be revoked at any time.",
  "The balance is paid before the call.",
  "Tokens are counted, and then they are paid.",
  "The same prompt has the same reply.",
  "No model was used for this text.",
  "A limit is a promise to everyone else.",
  "Each row says why the balance changed.",
  "A stream ends with the price of the call.",
  "When the balance is zero, the calls end.",
  "A new minute brings new requests.",
  "Keep the key out of the code.",
  "Good errors say what to do next.",
  "Read the row, then read the reason.",
  "One key for one service is enough.",
  "The last word is always counted, too.",
];

const FIRST_TOKENS = tokensOf(OPENING);
const TOKENS = SENTENCES.map((sentence) => tokensOf(` ${sentence}`));

function seedOf(texts: readonly string[]): number {
  let hash = 0x811c9dc5;
  for (const text of texts) {
    // For a long text, both ends are enough.
    const sample = text.length <= 1_024 ? text : text.slice(0, 512) + text.slice(-512);
    for (let at = 0; at < sample.length; at++) hash = Math.imul(hash ^ sample.charCodeAt(at), 0x01000193);
    hash = Math.imul(hash ^ text.length, 0x01000193);
  }
  return hash >>> 0;
}

/** Default length of a reply in tokens: the opening and one to three sentences. */
function usualTokens(seed: number): number {
  let count = FIRST_TOKENS.length;
  let state = seed;
  for (let sentences = 1 + (seed % 3); sentences > 0; sentences--) {
    state = next(state);
    count += pick(state).length;
  }
  return count;
}

export type NextToken = () => string;

/** An endless reply. A stream calls this for each token: a generator would cost three times as much. */
function replyTokens(seed: number): NextToken {
  let state = seed;
  let sentence: readonly string[] = FIRST_TOKENS;
  let at = 0;
  return () => {
    if (at === sentence.length) {
      state = next(state);
      sentence = pick(state);
      at = 0;
    }
    return sentence[at++] as string;
  };
}

function tokensOf(text: string): string[] {
  return text.match(/ ?\w+|[.,]/g) ?? [];
}

function next(state: number): number {
  return (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
}

/** Uses the high bits: the low bits of a linear congruential generator are less random. */
function pick(state: number): readonly string[] {
  return TOKENS[state >>> 28] as readonly string[];
}

/** One reply of a script. */
type Turn = {
  readonly reasoning?: string;
  readonly text?: string;
  /** Arguments are an object, or a text that is sent as it is. */
  readonly calls?: readonly { readonly name: string; readonly arguments?: object | string }[];
};

const SCRIPT_OPENING = "[[script=";
/** Only read where a text has the opening, so that long texts cost nothing. */
const SCRIPT = /\[\[script=([\w-]{1,262144})={0,2}\]\]/y;
const MAX_TURNS = 1_000;
const MAX_CALLS = 16;

/**
 * The turn of the last script in the messages: its number is the count of the assistant's turns so far, and the last turn is repeated.
 * Undefined without a script. Text in any other form is part of the prompt.
 */
function scriptedTurnOf(messages: readonly PromptMessage[]): Turn | undefined {
  for (const message of messages.toReversed()) {
    for (const text of textsOfMessage(message).toReversed()) {
      const turns = scriptIn(text);
      if (turns) return turns[Math.min(countTurns(messages), turns.length - 1)];
    }
  }
  return undefined;
}

function scriptIn(text: string): readonly Turn[] | undefined {
  SCRIPT.lastIndex = text.indexOf(SCRIPT_OPENING);
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
