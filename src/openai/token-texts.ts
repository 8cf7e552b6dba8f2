import { DomainError } from "../domain/errors.ts";
import { nextTurn } from "../domain/fairness.ts";
import type { JsonValue } from "../domain/json.ts";

/** The bytes of tokens; undefined if a number is not a token. */
export type DecodeTokens = (tokens: readonly number[]) => Promise<Buffer | undefined>;

type Texts = { readonly texts: readonly string[]; readonly fields?: readonly string[] };

const MAX_INPUTS = 2_048;
/** Decoding this many tokens takes a few milliseconds. */
const TOKENS_PER_TURN = 8_192;

/**
 * The texts of an input in any format that OpenAI accepts. LangChain's clients send tokens by default. Upstreams may have
 * another encoding, so they get the text.
 */
export async function textsAt(input: JsonValue | undefined, name: string, decode: DecodeTokens): Promise<Texts> {
  if (typeof input === "string") return { texts: [input], fields: [name] };
  if (!Array.isArray(input)) throw DomainError.ofField(name, FORMS);
  if (input.length > 0 && input.every(isNumber)) {
    return { texts: [await textOfTokens(input, name, decode)], fields: [name] };
  }
  if (input.length > MAX_INPUTS) throw DomainError.ofField(name, `must have at most ${MAX_INPUTS} texts`);
  const texts: string[] = [];
  for (const [i, item] of input.entries()) texts.push(await textOfItem(item, `${name}[${i}]`, decode));
  return { texts };
}

const FORMS = "must be a text, a list of texts, a list of tokens, or a list of lists of tokens";

async function textOfItem(item: JsonValue, field: string, decode: DecodeTokens): Promise<string> {
  if (typeof item === "string") return item;
  if (!Array.isArray(item) || !item.every(isNumber)) throw DomainError.ofField(field, FORMS);
  return await textOfTokens(item, field, decode);
}

async function textOfTokens(tokens: readonly number[], field: string, decode: DecodeTokens): Promise<string> {
  const parts: Buffer[] = [];
  for (let start = 0; start < tokens.length; start += TOKENS_PER_TURN) {
    const part = await decode(tokens.slice(start, start + TOKENS_PER_TURN));
    if (part === undefined) throw DomainError.ofField(field, "must have only tokens of the encoding cl100k_base");
    parts.push(part);
    await nextTurn();
  }
  return Buffer.concat(parts).toString("utf8");
}

function isNumber(value: JsonValue): value is number {
  return typeof value === "number";
}
