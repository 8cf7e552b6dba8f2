import { create, fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { CreateMessageRequestSchema } from "../../gen/vx/anthropic/v1/messages_pb.js";
import { type ChatMessage, CreateChatCompletionRequestSchema } from "../../gen/vx/openai/v1/chat_pb.js";
import { CreateResponseRequestSchema } from "../../gen/vx/openai/v1/responses_pb.js";
import { type EmbedResponse, EmbedResponseSchema } from "../../gen/vx/v1/embed_pb.js";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { KeyService, UpdateKeyRequestSchema } from "../../gen/vx/v1/key_pb.js";
import { generationRequestOfMessage } from "../../src/anthropic/request.ts";
import { readBinary } from "../../src/codec/binary/read-message.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { decode, readJsonMessage, weighMessage } from "../../src/codec/decode.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { writeInParts, writerOf } from "../../src/codec/json/writer.ts";
import { binaryParts, lengthOf, type Parts, protoJsonParts } from "../../src/codec/message-parts.ts";
import { finishInTurns } from "../../src/codec/steps.ts";
import { MAX_IMAGE_BYTES } from "../../src/domain/image.ts";
import { parseJson } from "../../src/domain/json.ts";
import { CAPABILITIES } from "../../src/domain/model.ts";
import { inputTokenBound, type PromptMessage } from "../../src/domain/prompt.ts";
import { checkConversation } from "../../src/generations/check-conversation.ts";
import { checkRequest } from "../../src/generations/check-request.ts";
import { generationRequestOf } from "../../src/generations/service.ts";
import { generationRequestOfChat } from "../../src/openai/chat/request.ts";
import { settingsOf } from "../../src/openai/responses/reply.ts";
import { generationRequestOfResponses } from "../../src/openai/responses/request.ts";
import { digestOfRequest } from "../../src/rules/request-digest.ts";
import { valueOfJson } from "../../src/rules/untyped-values.ts";
import { bodyBudget } from "../../src/server/http/connection-limits.ts";
import { httpBindings } from "../../src/server/rest/http-rule.ts";
import { decodeBody } from "../../src/server/wire/rest.ts";
import { turnsOf as anthropicTurnsOf } from "../../src/upstreams/anthropic/body.ts";
import { writeBody } from "../../src/upstreams/http/request-body.ts";
import { EventStream } from "../../src/upstreams/http/upstream-exchange.ts";
import { SandboxUpstream, sandboxVectors } from "../../src/upstreams/sandbox/sandbox.ts";
import { valueOfSchema } from "../../src/upstreams/sandbox/schema-value.ts";
import type { GenerateFields } from "./generators.ts";
import { HOSTILE_SCHEMAS } from "./hostile-schemas.ts";
import { imageOfSize } from "./images.ts";
import { modelOf, promptOf } from "./samples.ts";

/** Work on the largest inputs that are accepted. No part of it may block the event loop for 50 ms. */
type LargeWork = {
  readonly name: string;
  /**
   * How often the work must let other work run, at least; 0 for work that is short enough to be one part. Each part of the
   * code that stops dividing its work lowers the number, so it is the exact one.
   */
  readonly minTurns: number;
  /** How many of them run at once in the benchmark. */
  readonly concurrent?: number;
  /** Creates the input and returns the work. */
  prepare(): () => Promise<unknown>;
};

const chatReader = new Readers("ignore").of(CreateChatCompletionRequestSchema);

function decoding(tools: JsonValue, isJson: boolean): () => Promise<unknown> {
  const bytes = isJson
    ? Buffer.from(JSON.stringify({ tools }))
    : Buffer.from(toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { tools: [{ parameters: { tools } }] })));
  const budget = new BodyBudget(bodyBudget);
  const stepsOf = () => (isJson ? readJsonMessage(chatReader, bytes) : readBinary(GenerateRequestSchema, bytes));
  return async () => decode(bytes, budget.openShare(undefined), stepsOf());
}

const BODIES: Readonly<Record<string, JsonValue>> = {
  "16,000 lists": Array(16_000).fill([]),
  "15,000 names in objects of 60": Array(250).fill(Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`k${i}`, 1]))),
  "lists in each other": Array(250).fill(JSON.parse(`${"[".repeat(60)}${"]".repeat(60)}`)),
};

const decodings: readonly LargeWork[] = Object.entries(BODIES).flatMap(([name, tools]) =>
  [true, false].map((isJson) => ({
    name: `${name}, ${isJson ? "JSON" : "binary"}: decoded`,
    minTurns: 7,
    concurrent: 32,
    prepare: () => decoding(tools, isJson),
  })),
);

/** A body that is read twice: for its values, and for the names of the fields that change. */
function patchDecoding(): () => Promise<unknown> {
  const gap = " ".repeat(30_000);
  const limit = `{"metric":${gap}"generations",${gap}"window":${gap}"month",${gap}"amount":${gap}1}`;
  const bytes = Buffer.from(`{"limits":[${Array(40).fill(limit).join()}]}`);
  const [binding] = httpBindings(KeyService.method.updateKey);
  if (!binding) throw new Error("UpdateKey has no address");
  const input = UpdateKeyRequestSchema;
  const endpoint = { binding, input, readBody: new Readers("refuse").of(input) };
  const share = new BodyBudget(bodyBudget).openShare(undefined);
  return async () => decode(bytes, share, decodeBody(endpoint, bytes));
}

const said = { role: "user", content: "Hello" };
const properties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`property_${i}`, { type: "string" }]));

/** The largest requests that are accepted, below the limit of a body. */
const REQUESTS: readonly [name: string, minTurns: number, fields: () => Omit<GenerateFields, "model">][] = [
  [
    "an image of 20 MiB",
    40,
    () => ({ messages: [{ role: "user", parts: [{ image: { data: imageOfSize(MAX_IMAGE_BYTES) } }] }] }),
  ],
  [
    "100 images of 200 kB",
    100,
    () => ({ messages: [{ role: "user", parts: Array(100).fill({ image: { data: imageOfSize(200_000) } }) }] }),
  ],
  [
    "a schema of 10,000 properties",
    7,
    () => ({ messages: [said], tools: [{ name: "a", parameters: { type: "object", properties: properties(10_000) } }] }),
  ],
  [
    "256 tools",
    13,
    () => ({
      messages: [said],
      tools: Array.from({ length: 256 }, (_, i) => ({ name: `t${i}`, parameters: { properties: properties(80) } })),
    }),
  ],
  ["30 MB of surrogate pairs", 40, () => ({ messages: Array(20).fill({ role: "user", content: "\u{1f600}".repeat(390_000) }) })],
  [
    "30 MB of arguments",
    112,
    () => ({
      messages: Array.from({ length: 75 }, () => ({
        role: "assistant",
        toolCalls: [{ id: "a", name: "b", arguments: `{"a":[${"1,".repeat(199_000)}1]}` }],
      })),
    }),
  ],
];

const ABLE = modelOf({ capabilities: CAPABILITIES.filter((one) => one !== "embeddings") });

const checks: readonly LargeWork[] = REQUESTS.map(([name, minTurns, fields]) => ({
  name: `${name}: the work before the hold`,
  minTurns,
  prepare: () => {
    const message = create(GenerateRequestSchema, { model: "m", ...fields() });
    return async () => {
      const request = await generationRequestOf(message);
      await checkRequest(ABLE, request);
      await digestOfRequest("method", GenerateRequestSchema, message, "");
      await inputTokenBound(request);
    };
  },
}));

const digestOf = (fields: Omit<GenerateFields, "model">) => () =>
  digestOfRequest("generate", GenerateRequestSchema, create(GenerateRequestSchema, fields), "");

const digests: readonly LargeWork[] = [
  {
    name: "65,000 values: digest",
    minTurns: 9,
    prepare: () => {
      const tools = valueOfJson(Array.from({ length: 65_000 }, (_, i) => `value ${i}`));
      const request = create(CreateChatCompletionRequestSchema, { tools });
      return () => digestOfRequest("chat", CreateChatCompletionRequestSchema, request, "");
    },
  },
  {
    name: "30 MB of text: digest",
    minTurns: 57,
    prepare: () => digestOf({ messages: [{ role: "user", content: "a".repeat(30_000_000) }] }),
  },
  {
    name: "30 MB of images: digest",
    minTurns: 58,
    prepare: () => digestOf({ messages: [{ role: "user", parts: [{ image: { data: new Uint8Array(30_000_000) } }] }] }),
  },
];

const part = (type: string) => ({ type, text: "word ".repeat(50) });

// About as many values as the untyped fields of one request can have.
const conversions: readonly LargeWork[] = [
  {
    name: "a chat of 2,000 messages with ten parts each: converted",
    minTurns: 0,
    prepare: () => {
      const messages = Array.from({ length: 2_000 }, () => ({ role: "user" }));
      const request = fromJson(CreateChatCompletionRequestSchema, { model: "m", messages });
      for (const message of request.messages as ChatMessage[])
        message.content = valueOfJson(Array.from({ length: 10 }, () => part("text")));
      return async () => generationRequestOfChat(request);
    },
  },
  {
    name: "an input of 10,000 items: converted",
    minTurns: 0,
    prepare: () => {
      const request = fromJson(CreateResponseRequestSchema, { model: "m" });
      const item = { type: "message", role: "user", content: [part("input_text")] };
      request.input = valueOfJson(Array.from({ length: 10_000 }, () => item));
      return async () => settingsOf(request, generationRequestOfResponses(request).options);
    },
  },
  {
    // Each control character is six characters of JSON text.
    name: "30 MB of control characters in the inputs of tools: converted",
    minTurns: 77,
    prepare: () => {
      const input = { text: "\u0001".repeat(390_000) };
      const content = [{ type: "tool_use", id: "a", name: "f", input }];
      const messages = Array.from({ length: 77 }, () => ({ role: "assistant", content: valueOfJson(content) }));
      const request = create(CreateMessageRequestSchema, { model: "m", maxTokens: 1, messages });
      return () => generationRequestOfMessage(request);
    },
  },
  {
    name: "30 MB of short lists in arguments: checked",
    minTurns: 237,
    prepare: () => {
      const text = `{"a":[${"[],".repeat(400)}1]}`;
      const toolCalls = Array.from({ length: 256 }, (_, i) => ({ id: `a${i}`, name: "f", arguments: text }));
      const message: PromptMessage = { role: "assistant", content: "", toolCalls };
      return () => checkConversation({ format: "native", messages: Array(100).fill(message) });
    },
  },
];

const WIDE_TEXT = "水".repeat(100_000);
const wideMessages = () => Array.from({ length: 100 }, () => ({ role: "user", content: WIDE_TEXT }) as const);

const wideTexts: readonly LargeWork[] = [
  {
    name: "30 MB of wide characters: weighed",
    minTurns: 17,
    prepare: () => {
      const message = create(GenerateRequestSchema, { model: "m", messages: wideMessages() });
      return () => finishInTurns(weighMessage(message, 30_000_000));
    },
  },
  {
    name: "30 MB of wide characters: the bound of its tokens",
    minTurns: 49,
    prepare: () => {
      const prompt = promptOf({ messages: wideMessages() });
      return async () => inputTokenBound(prompt);
    },
  },
];

const schemas: readonly LargeWork[] = Object.entries(HOSTILE_SCHEMAS).map(([name, schema]) => ({
  name: `a schema with ${name}: instance`,
  minTurns: 0,
  prepare: () => async () => valueOfSchema(schema),
}));

const embeddingForms: readonly LargeWork[] = (
  [
    ["REST JSON", 153, (message) => writeInParts(writerOf(EmbedResponseSchema), EmbedResponseSchema, message)],
    ["ProtoJSON", 153, (message) => protoJsonParts(EmbedResponseSchema, message, {})],
    ["binary", 31, (message) => binaryParts(EmbedResponseSchema, message)],
  ] satisfies [name: string, minTurns: number, partsOf: (message: EmbedResponse) => Parts][]
).map(([name, minTurns, partsOf]) => ({
  name: `2,000 embeddings of 256 numbers: encoded as ${name}`,
  minTurns,
  prepare: () => {
    const values = Array.from({ length: 256 }, (_, i) => Math.fround(1 / (i + 3)));
    const embeddings = Array.from({ length: 2_000 }, (_, index) => ({ index, values }));
    const message = create(EmbedResponseSchema, { embeddings });
    return () => lengthOf(partsOf(message));
  },
}));

const upstreamWork: readonly LargeWork[] = [
  {
    name: "a reply of 32,000 tokens of the sandbox",
    minTurns: 125,
    prepare: () => {
      const settings = { kind: "sandbox", delayMs: 0 } as const;
      const sandbox = new SandboxUpstream({ settings, countPrompt: async () => 1 });
      const prompt = promptOf({ messages: [{ role: "user", content: "[[tokens=32000]]" }], maxTokens: 32_000 });
      return async () => {
        for await (const _ of sandbox.generate(prompt, new AbortController().signal));
      };
    },
  },
  {
    name: "256 vectors of 4,096 numbers of the sandbox",
    minTurns: 64,
    prepare: () => {
      const messages = Array.from({ length: 256 }, (_, i) => ({ role: "user" as const, content: `text ${i}` }));
      return () => sandboxVectors(messages, 4_096);
    },
  },
  ...embeddingForms,
  {
    name: "a conversation of 32 MiB: encoded as JSON",
    minTurns: 480,
    prepare: () => {
      const { value, chars } = largeConversation();
      return () => writeBody(value, chars);
    },
  },
  {
    name: "32 MB of white space: messages of Anthropic",
    minTurns: 0,
    prepare: () => {
      const messages = Array.from({ length: 80 }, () => ({ role: "user" as const, content: "\n".repeat(400_000) }));
      return async () => anthropicTurnsOf(messages);
    },
  },
];

/** Chunks of 64 KiB of an event stream. */
const CHUNKS: Readonly<Record<string, string>> = {
  // The second byte of this letter is the code of a carriage return, so a search for one stops there.
  "the slowest lines": `${"\n".repeat(32_768)}${"\u010d".repeat(16_383)}\r`,
  comments: ": still thinking\n\n".repeat(3_640),
  "one line": `data: ${"x".repeat(65_530)}`,
};

const chunks: readonly LargeWork[] = Object.entries(CHUNKS).map(([name, text]) => ({
  name: `a chunk of ${name}: read`,
  minTurns: 0,
  prepare: () => {
    const events = new EventStream(100_000_000, () => undefined);
    return async () => events.push(Buffer.from(text));
  },
}));

/** A body of an upstream's request, and the characters of its texts. */
export function largeConversation(): { value: object; chars: number } {
  const contents = ["lorem ipsum ".repeat(33_000), `a${"😀".repeat(399_999)}`, 'a"\n'.repeat(130_000)];
  const messages = Array.from({ length: 60 }, (_, i) => ({ role: "user", content: contents[i % 3] ?? "" }));
  const value = { model: "m", stop: undefined, none: null, list: [], messages, stream: true };
  return { value, chars: messages.reduce((sum, { content }) => sum + content.length, 0) };
}

/** The longest texts of an upstream that JSON.parse could misread. */
const MISREAD: Readonly<Record<string, string>> = {
  "many escaped names": `{${Array.from({ length: 9_999 }, (_, i) => `"\\n${i}":1`).join(",")}}`,
  "an escaped name and many lists": `[{"\\n":1},${"[],".repeat(349_000)}1]`,
  "an escaped name and many strings": `[{"\\n":1},${'"\\n",'.repeat(209_000)}1]`,
};

const misread: readonly LargeWork[] = Object.entries(MISREAD).map(([name, text]) => ({
  name: `a reply with ${name}: parsed`,
  minTurns: 0,
  prepare: () => async () => parseJson(text),
}));

export const LARGE_WORK: readonly LargeWork[] = [
  ...decodings,
  { name: "a PATCH with 5 MB of spaces: decoded", minTurns: 39, prepare: patchDecoding },
  ...checks,
  ...digests,
  ...conversions,
  ...wideTexts,
  ...schemas,
  ...upstreamWork,
  ...chunks,
  ...misread,
];
