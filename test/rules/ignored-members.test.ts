// The header `x-vx-ignored` names what a call in the format of another vendor ignores.
import type { DescMessage } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { CountTokensRequestSchema, CreateMessageRequestSchema } from "../../gen/vx/anthropic/v1/messages_pb.js";
import { CreateChatCompletionRequestSchema } from "../../gen/vx/openai/v1/chat_pb.js";
import { CreateCompletionRequestSchema } from "../../gen/vx/openai/v1/completions_pb.js";
import { CreateEmbeddingsRequestSchema } from "../../gen/vx/openai/v1/embeddings_pb.js";
import { CreateResponseRequestSchema } from "../../gen/vx/openai/v1/responses_pb.js";
import { CHAT, COMPLETIONS, EMBEDDINGS, MESSAGES, RESPONSES } from "../../src/rules/compatible-members.ts";
import type { MemberTable } from "../../src/rules/request-members.ts";
import { fieldForUnknown, isUntyped } from "../../src/rules/untyped-values.ts";
import { post as postJson } from "../support/any-json.ts";
import { startTestApp } from "../support/app.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { WIRES_OF_KIND } from "../support/fake-upstreams/wire.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey, SMALL, said } from "../support/openai.ts";
import { started } from "../support/started.ts";

const upstream = started(() => FakeUpstream.start({ wire: WIRES_OF_KIND.openai[0] as never }));
const modelOf = (id: string, upstream: object, more: object) => ({
  id,
  context_window: 8_192,
  max_output_tokens: 4_096,
  prices: { input: 1, output: 1 },
  upstream,
  ...more,
});
const models = started(() =>
  createModelsFile(
    JSON.stringify({
      models: [
        modelOf(SMALL, { kind: "sandbox" }, { capabilities: ["tools", "reasoning"] }),
        modelOf("vx-sandbox-embed", { kind: "sandbox" }, { capabilities: ["embeddings"] }),
        modelOf(
          "remote",
          { kind: "openai", base_url: upstream.baseUrl, model: "fake-model" },
          { capabilities: ["tools"], extra_fields: ["provider"] },
        ),
      ],
    }),
  ),
);
const app = started(() => startTestApp({ env: { VX_MODELS: models.path } }));
const key = started(() => createPaidKey(operatorOf(app), { plan: "scale" }));

async function post(path: string, body: object) {
  const { header, ...answer } = await postJson(app, key, path, body);
  return { ...answer, ignored: header("x-vx-ignored") };
}

const CHAT_CALL = { model: SMALL, max_tokens: 5, messages: [said("Hello")] };
const RESPONSE_CALL = { model: SMALL, max_output_tokens: 20, input: "Hello" };
const OPENROUTER = { models: [SMALL], provider: { sort: "price" }, plugins: [], transforms: [], route: "fallback" };
const OPENROUTER_NAMES = Object.keys(OPENROUTER).join(", ");
const FUNCTION = { type: "function", function: { name: "f" } };
const FLAT = { type: "function", name: "f" };
const CUSTOM = { name: "f", input_schema: { type: "object" } };

test.each<[path: string, body: object, ignored: string | null]>([
  ["/v1/chat/completions", CHAT_CALL, null],
  ["/v1/chat/completions", { ...CHAT_CALL, ...OPENROUTER }, OPENROUTER_NAMES],
  ["/v1/chat/completions", { ...CHAT_CALL, stream: true, ...OPENROUTER }, OPENROUTER_NAMES],
  ["/v1/chat/completions", { ...CHAT_CALL, models: null }, null],
  ["/v1/chat/completions", { ...CHAT_CALL, metadata: { a: "b" }, prompt_cache_key: "a" }, null],
  [
    "/v1/chat/completions",
    {
      ...CHAT_CALL,
      messages: [
        { ...said("Hello"), name: "a", tag: 1 },
        { role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] },
      ],
      tools: [{ ...FUNCTION, cache: true }],
    },
    "messages[0].tag, messages[1].content[0].cache_control, tools[0].cache",
  ],
  ["/v1/responses", { ...RESPONSE_CALL, ...OPENROUTER }, OPENROUTER_NAMES],
  [
    "/v1/responses",
    { ...RESPONSE_CALL, input: [{ ...said("Hello"), tag: 1 }], text: { tone: "dry" } },
    "input[0].tag, text.tone",
  ],
  ["/v1/completions", { model: SMALL, prompt: "Hello", max_tokens: 5, route: "fallback" }, "route"],
  ["/v1/embeddings", { model: "vx-sandbox-embed", input: "Hello", input_type: "query" }, "input_type"],
  [
    "/v1/messages",
    { ...CHAT_CALL, context_management: {}, thinking: { type: "disabled", tag: 1 } },
    "thinking.tag, context_management",
  ],
  ["/v1/messages/count_tokens", { model: SMALL, messages: [said("Hello")], max_tokens: 5 }, "max_tokens"],
  ["/anthropic/v1/messages", { ...CHAT_CALL, route: "fallback" }, "route"],
])("%s with %j", async (path, body, ignored) => {
  const answer = await post(path, body);
  expect([answer.status, answer.ignored]).toEqual([200, ignored]);
});

test("a member that extra_fields of the model lists is sent to the upstream and not named", async () => {
  const answer = await post("/v1/chat/completions", { ...CHAT_CALL, model: "remote", ...OPENROUTER });
  expect(answer.ignored).toBe("models, plugins, transforms, route");
  expect(upstream.calls.at(-1)?.body).toMatchObject({ provider: OPENROUTER.provider });
});

test("the header is also on errors, and the native API still refuses unknown members", async () => {
  const answer = await post("/v1/chat/completions", { ...CHAT_CALL, route: "fallback", temperature: 1, top_p: 9 });
  expect([answer.status, answer.ignored]).toEqual([400, "route"]);
  const native = await post("/v1/generate", { ...CHAT_CALL, route: "fallback" });
  expect([native.status, native.ignored]).toEqual([400, null]);
});

test("names are printable, contain no key, and have at most 1,000 characters together", async () => {
  const answer = await post("/v1/chat/completions", { ...CHAT_CALL, "a,b\r\nä%": 1, [`${key.secret}x`]: 1 });
  expect(answer.status).toBe(400);
  expect((await post("/v1/chat/completions", { ...CHAT_CALL, "a,b\r\nä%": 1 })).ignored).toBe("a%2Cb%0D%0A%C3%A4%25");
  const messages = Array.from({ length: 200 }, () => ({ ...said("Hi"), tag: 1 }));
  const { status, ignored } = await post("/v1/chat/completions", { ...CHAT_CALL, messages });
  expect(status).toBe(200);
  expect(ignored?.length).toBeLessThanOrEqual(1_000);
  expect(ignored).toMatch(/^messages\[0\]\.tag, messages\[1\]\.tag, .*, \.\.\.$/);
});

describe("tools of other types", () => {
  const search = { type: "web_search", filters: {} };
  const cases: [path: string, body: object, tool: object, choices: [automatic: unknown, other: unknown]][] = [
    ["/v1/chat/completions", CHAT_CALL, FUNCTION, ["auto", "required"]],
    ["/v1/responses", RESPONSE_CALL, FLAT, ["auto", "none"]],
    ["/v1/messages", { ...CHAT_CALL, max_tokens: 200 }, CUSTOM, [{ type: "auto" }, { type: "any" }]],
  ];

  test.each(cases)("%s leaves them out if the model decides which it calls", async (path, body, tool, [automatic]) => {
    for (const choice of [{}, { tool_choice: automatic }]) {
      const mixed = await post(path, { ...body, ...choice, tools: [search, tool, { type: "namespace", name: "n" }] });
      expect([mixed.status, mixed.ignored], mixed.text).toEqual([200, "tools[0], tools[2]"]);
      const alone = await post(path, { ...body, ...choice, tools: [search] });
      expect([alone.status, alone.ignored], alone.text).toEqual([200, "tools[0]"]);
    }
  });

  test.each(cases)("%s refuses them otherwise", async (path, body, tool, [, other]) => {
    const answer = await post(path, { ...body, tools: [tool, search], tool_choice: other });
    expect(answer.status).toBe(400);
    expect(answer.json).toHaveProperty("error.param", "tools[1].type");
    expect(answer.text).toContain('\\"web_search\\" is not supported');
  });

  test("a response repeats only the tools that the model gets", async () => {
    const { json } = await post("/v1/responses", { ...RESPONSE_CALL, tools: [search, FLAT] });
    expect(json.tools).toMatchObject([{ type: "function", name: "f" }]);
  });

  test("an upstream gets neither a tool nor its choice if all tools are left out", async () => {
    const choice = { tool_choice: "auto", parallel_tool_calls: true };
    await post("/v1/chat/completions", { ...CHAT_CALL, model: "remote", tools: [search], ...choice });
    const sent = Object.keys(upstream.calls.at(-1)?.body ?? {});
    expect(sent.filter((name) => name.includes("tool"))).toEqual([]);
  });
});

/** The paths of all fields, without those in the open part of an untyped field. */
function pathsOf(desc: DescMessage, prefix = ""): string[] {
  return desc.fields.flatMap((field) => {
    if (field === fieldForUnknown(desc)) return [];
    const path = prefix + field.name;
    const { message } = field;
    const isOpen = !message || isUntyped(message) || message.typeName === "google.protobuf.Struct";
    return isOpen ? [path] : [path, ...pathsOf(message, `${path}${field.fieldKind === "list" ? "[]" : ""}.`)];
  });
}

test.each<[name: string, table: MemberTable, descs: DescMessage[]]>([
  ["chat completions", CHAT, [CreateChatCompletionRequestSchema]],
  ["responses", RESPONSES, [CreateResponseRequestSchema]],
  ["completions", COMPLETIONS, [CreateCompletionRequestSchema]],
  ["embeddings", EMBEDDINGS, [CreateEmbeddingsRequestSchema]],
  ["messages", MESSAGES, [CreateMessageRequestSchema, CountTokensRequestSchema]],
])("the table of %s has each field of the .proto, and reads only those at the top", (_name, table, descs) => {
  const listed = table.rows.flatMap(({ paths }) => paths);
  const fields = descs.flatMap((desc) => pathsOf(desc));
  expect(fields.filter((path) => !listed.includes(path))).toEqual([]);
  const readAtTop = table.rows
    .filter(({ rule }) => rule.kind === "read" || rule.kind === "only" || rule.kind === "tools")
    .flatMap(({ paths }) => paths.filter((path) => !path.includes(".")));
  expect(readAtTop.filter((path) => !fields.includes(path))).toEqual([]);
  expect(new Set(listed).size).toBe(listed.length);
});
