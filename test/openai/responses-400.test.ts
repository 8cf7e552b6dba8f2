import { describe, expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { useTestApp } from "../support/app.ts";
import { SMALL, usePaidKey } from "../support/openai.ts";

const app = useTestApp();
const key = usePaidKey(app);

const send = (fields: object) =>
  sendJson(app.url, {
    verb: "POST",
    path: "/v1/responses",
    body: { model: SMALL, input: "Hello", ...fields },
    secret: key.secret,
  });

const call = { type: "function_call", call_id: "1", name: "f", arguments: "{}" };
const output = { type: "function_call_output", call_id: "1", output: "x" };
const tool = { type: "function", name: "f", parameters: {} };
const user = (...content: object[]) => ({ role: "user", content });

test.each([
  [{ prompt: { id: "pmpt_1" } }, "prompt: is not supported"],
  [{ background: true }, "background: only false is supported"],
  [{ input: undefined }, "input: is required"],
])("%j is refused with the value that is supported", async (fields, message) => {
  expect(await send(fields)).toMatchObject({ status: 400, body: { error: { message } } });
});

test.each([{ input: [{ type: "item_reference", id: "msg_1" }] }, { previous_response_id: "resp_1" }])(
  "%j is refused with what to set in the clients",
  async (fields) => {
    const message = expect.stringMatching(/providerOptions\.openai\.store to false.*"store" to false/);
    expect(await send(fields)).toMatchObject({ status: 400, body: { error: { message } } });
  },
);

// test/openai/responses-request-fields.test.ts has the fields and kinds that are not supported.
describe("a 400 names the field:", () => {
  test.each<[field: string, fields: object]>([
    ["text.format.name", { text: { format: { type: "json_schema", schema: {} } } }],
    ["reasoning.effort", { reasoning: { effort: "extreme" } }],
    ["reasoning.summary", { reasoning: { summary: "long" } }],
    ["metadata.a", { metadata: { a: 1 } }],
    ["metadata.a", { metadata: { a: "x".repeat(513) } }],
    ["metadata", { metadata: { ["a".repeat(65)]: "x" } }],
    ["metadata", { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`m${i}`, ""])) }],
    ["max_output_tokens", { max_output_tokens: 0 }],
    ["temperature", { temperature: 2.1 }],
    ["top_p", { top_p: 1.1 }],
    ["tool_choice", { tools: [tool], tool_choice: { type: "function", name: "g" } }],
    ["tools[0].name", { tools: [{ type: "function" }] }],
    ["input", { input: [] }],
    ["input", { input: { role: "user", content: "x" } }],
    ["input[0]", { input: ["x"] }],
    ["input[0].role", { input: [{ role: "tool", content: "x" }] }],
    ["input[0].content", { input: [{ role: "user", content: null }] }],
    ["input[0].content[0].file_id", { input: [user({ type: "input_image", file_id: "file_1" })] }],
    ["input[0].content[0].image_url", { input: [user({ type: "input_image", image_url: "ftp://a.b/c" })] }],
    ["input[0].content[0].image_url", { input: [user({ type: "input_image", image_url: "http://127.0.0.1/" })] }],
    ["input[0].call_id", { input: [{ ...call, call_id: undefined }] }],
    ["input[0]", { input: [{ ...call, arguments: "not JSON" }, output] }],
    ["input[0]", { input: [output] }],
    ["input[1]", { input: [call, { ...output, call_id: "2" }] }],
    ["input[2]", { input: [call, output, output] }],
    ["input[0]", { input: [call, call] }],
    ["input[0].summary[0].text", { input: [{ type: "reasoning", summary: [{ type: "summary_text" }] }] }],
    ["input[0]", { input: [{ role: "system", content: user({ type: "input_image" }).content }] }],
  ])("%s", async (field, fields) => {
    const { status, body } = await send(fields);
    const { error } = body as { error: { param: string; code: string; message: string } };
    expect([status, error.code]).toEqual([400, "invalid_argument"]);
    expect(error.param.startsWith(field), error.param).toBe(true);
    expect(error.message).toContain(field);
  });
});

describe("a value without effect is accepted:", () => {
  test.each([
    { store: false, background: false, truncation: "disabled", service_tier: "auto", top_logprobs: 0 },
    { store: null, previous_response_id: null, conversation: null, background: null, prompt: null },
    { include: ["reasoning.encrypted_content"], tools: [], text: {}, reasoning: {}, metadata: {} },
    { include: null, tools: null, tool_choice: null, text: null, reasoning: null, metadata: null },
    { text: { format: { type: "text" }, verbosity: "medium" }, reasoning: { effort: null, summary: null } },
    { input: [{ type: "reasoning", id: "rs_1", summary: [] }, user({ type: "input_text", text: "Hello" })] },
    { client_metadata: { a: 1 }, stream_options: { include_obfuscation: false }, prompt_cache_retention: "24h" },
  ])("%j", async (fields) => {
    const { status, body } = await send(fields);
    expect(status, JSON.stringify(body)).toBe(200);
  });
});

test("a conversation may have as many items as the untyped fields of a request allow", async () => {
  const exchange = [call, output];
  const input = Array.from({ length: 100 }, () => exchange).flat();
  expect((await send({ input })).status).toBe(200);
  const refused = await send({ input: [...input, call] });
  expect(refused).toMatchObject({ status: 400, body: { error: { param: "input" } } });
});
