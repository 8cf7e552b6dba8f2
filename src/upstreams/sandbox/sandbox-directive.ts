import type { PromptMessage } from "../../domain/prompt.ts";
import { textsOfMessage } from "../../domain/prompt-texts.ts";
import { UpstreamFailure } from "../upstream-failure.ts";

/** Behaviour of the sandbox that a prompt can set. */
export type Directive = {
  readonly tokens?: number;
  readonly delay_ms?: number;
  /** Fail after this many tokens. */
  readonly fail_after?: number;
  /** Tokens of reasoning before the reply. */
  readonly reasoning?: number;
  /** Input tokens to report as read from a cache. */
  readonly cached?: number;
  /** Input tokens to report as written to a cache. */
  readonly cache_write?: number;
  /** Call this many tools. */
  readonly tools?: number;
  /** Call the tool with this name; the first one if the name is empty. */
  readonly tool?: string;
};

/** Name → maximum. */
const LARGEST = {
  tokens: 32_000,
  delay_ms: 10_000,
  fail_after: 32_000,
  reasoning: 32_000,
  cached: 99_999_999,
  cache_write: 99_999_999,
  tools: 16,
} as const;

const DIRECTIVE = /^\[\[([\w.=:-]{1,150}(?: [\w.=:-]{1,150}){0,7})\]\]/;
const PART = /^(?:tool(?:=([\w.:-]{1,128}))?|([a-z_]+)=(\d{1,8}))$/;

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
