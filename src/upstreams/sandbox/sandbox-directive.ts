import type { Prompt } from "../../domain/prompt.ts";

/** How a caller wants the sandbox to behave. */
type Directive = {
  readonly tokens?: number;
  readonly delayMs?: number;
  /** Break off after so many tokens. */
  readonly failAfter?: number;
};

/** name → the largest value. */
const LARGEST = { tokens: 32_000, delay_ms: 10_000, fail_after: 32_000 } as const;

/**
 * What the last message says in double brackets at its beginning, such as "[[tokens=200 delay_ms=20]]". Anything that
 * does not read so is text like any other.
 */
export function directiveOf({ messages }: Prompt): Directive {
  const content = messages.at(-1)?.content ?? "";
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
