import { randomBytes } from "node:crypto";
import { PNG } from "../test/support/images.ts";

/** A chat completion with a large request or reply. */
export type LargeChat = {
  readonly name: string;
  /** Enough to use the whole machine. */
  readonly callers: number;
  /** The number of pieces of a streamed reply. */
  readonly pieces?: number;
  bodyFor(model: string): string;
};

const TOOLS = 20;
const PROPERTIES = 100;
const IMAGES = 5;
const IMAGE_BYTES = 1_000_000;
const PIECES = 1_000;
/** A message has at most 400,000 characters. */
const TOKENS_PER_MESSAGE = 10_000;

/** Common English words, each one token with the space before it. */
const WORDS = (
  "the of and to in is that for it was on are as with they be at one have this from or had by but some what " +
  "there we can out other were all your when up use word how said an each she which do their time if will way"
).split(" ");

export const LARGE_CHATS: Readonly<Record<string, LargeChat>> = {
  "large-1k": promptOf(1_000, 64),
  "large-10k": promptOf(10_000, 32),
  "large-100k": promptOf(100_000, 16),
  "large-stream": {
    name: `a stream of ${PIECES} pieces`,
    callers: 32,
    pieces: PIECES,
    bodyFor: (model) => bodyOf(model, { messages: [{ role: "user", content: "Count." }], stream: true }),
  },
  "large-tools": { name: `${TOOLS} tools with ${PROPERTIES} properties each`, callers: 16, bodyFor: toolsBody },
  "large-images": { name: `${IMAGES} images of ${IMAGE_BYTES / 1e6} MB`, callers: 8, bodyFor: imagesBody },
};

function bodyOf(model: string, fields: object): string {
  return JSON.stringify({ model, max_tokens: 100, ...fields });
}

function promptOf(tokens: number, callers: number): LargeChat {
  const text = (count: number) => Array.from({ length: count }, (_, at) => WORDS[(at * 31 + (at % 7)) % WORDS.length]).join(" ");
  const perMessage = Math.min(tokens, TOKENS_PER_MESSAGE);
  const message = { role: "user", content: text(perMessage) };
  const messages = Array.from({ length: tokens / perMessage }, () => message);
  return { name: `a prompt of ${tokens.toLocaleString("en")} tokens`, callers, bodyFor: (model) => bodyOf(model, { messages }) };
}

function toolsBody(model: string): string {
  const properties = Object.fromEntries(
    Array.from({ length: PROPERTIES }, (_, at) => [
      `property_${at}`,
      {
        type: "object",
        description: `The setting number ${at} of the tool. If it is not given, the tool uses the default.`,
        properties: { value: { type: "string", enum: ["low", "medium", "high"] }, since: { type: "integer" } },
        required: ["value"],
      },
    ]),
  );
  const tools = Array.from({ length: TOOLS }, (_, at) => ({
    type: "function",
    function: { name: `tool_${at}`, description: "Does one thing.", parameters: { type: "object", properties } },
  }));
  return bodyOf(model, { messages: [{ role: "user", content: "Choose a tool." }], tools });
}

function imagesBody(model: string): string {
  const image = () => Buffer.concat([PNG, randomBytes(IMAGE_BYTES - PNG.length)]).toString("base64");
  const images = Array.from({ length: IMAGES }, () => ({
    type: "image_url",
    image_url: { url: `data:image/png;base64,${image()}` },
  }));
  const content = [{ type: "text", text: "Compare these images." }, ...images];
  return bodyOf(model, { messages: [{ role: "user", content }] });
}
