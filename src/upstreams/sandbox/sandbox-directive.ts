import type { Prompt } from "../../domain/prompt.ts";
import { textsOfMessage } from "../../domain/prompt-texts.ts";

/** Behaviour of the sandbox that a prompt can set. */
type Directive = {
  readonly tokens?: number;
  readonly delayMs?: number;
  /** Fail after this many tokens. */
  readonly failAfter?: number;
};

/** Name → maximum. */
const LARGEST = { tokens: 32_000, delay_ms: 10_000, fail_after: 32_000 } as const;

/**
 * The directive in double brackets at the start of the last message, such as "[[tokens=200 delay_ms=20]]".
 * Text in any other form is part of the prompt.
 */
export function directiveOf({ messages }: Prompt): Directive {
  const last = messages.at(-1);
  const [content = ""] = last ? textsOfMessage(last) : [];
  const inside = content.startsWith("[[")
    ? /^\[\[([a-z_]+=\d{1,5}(?: [a-z_]+=\d{1,5}){0,2})\]\]/.exec(content)?.[1]
    : undefined;
  if (inside === undefined) return {};
  const values = new Map<string, number>();
  for (const part of inside.split(" ")) {
    const [name = "", value = ""] = part.split("=");
    if (!isName(name) || values.has(name) || Number(value) > LARGEST[name]) return {};
    values.set(name, Number(value));
  }
  const [tokens, delayMs, failAfter] = ["tokens", "delay_ms", "fail_after"].map((name) => values.get(name));
  return {
    ...(tokens === undefined ? {} : { tokens }),
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(failAfter === undefined ? {} : { failAfter }),
  };
}

function isName(name: string): name is keyof typeof LARGEST {
  return Object.hasOwn(LARGEST, name);
}
