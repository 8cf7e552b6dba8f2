import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ChatService,
  CreateChatCompletionRequestSchema,
  StreamChatCompletionRequestSchema,
} from "../../gen/vx/openai/v1/chat_pb.js";
import {
  CreateResponseRequestSchema,
  ResponsesService,
  StreamResponseRequestSchema,
} from "../../gen/vx/openai/v1/responses_pb.js";
import { jsonOf } from "../../src/rules/plain-values.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { createPaidKey, SMALL } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";

let app: TestApp;
let headers: Record<string, string>;

beforeAll(async () => {
  app = await startTestApp();
  headers = bearer((await createPaidKey(operatorOf(app))).secret);
});
afterAll(() => app.stop());

const PARAMETERS = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const CHAT: JsonObject = {
  model: SMALL,
  messages: [{ role: "user", content: [{ type: "text", text: "[[tool]] Weather?" }] }],
  tools: [{ type: "function", function: { name: "weather", parameters: PARAMETERS } }],
};
const RESPONSE: JsonObject = {
  model: SMALL,
  input: [{ role: "user", content: [{ type: "input_text", text: "[[tool]] Weather?" }] }],
  tools: [{ type: "function", name: "weather", parameters: PARAMETERS }],
};

async function rest(path: string, body: JsonObject): Promise<never> {
  const response = await fetch(app.url + path, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as never;
}

describe.each([
  ["gRPC", () => createGrpcTransport({ baseUrl: app.url })],
  ["Connect with JSON", () => createConnectTransport({ baseUrl: app.url, httpVersion: "1.1" })],
  [
    "Connect in binary form",
    () => createConnectTransport({ baseUrl: app.url, httpVersion: "2", useBinaryFormat: true }),
  ],
])("the body of a REST request over %s", (_, transport) => {
  test("gets the same chat completion, unary and streamed", async () => {
    const client = createClient(ChatService, transport());
    const reply = await client.createChatCompletion(fromJson(CreateChatCompletionRequestSchema, CHAT), {
      headers,
    });
    const told: { choices: [{ message: { tool_calls: unknown } }] } = await rest(
      "/v1/chat/completions",
      CHAT,
    );
    const calls = reply.choices[0]?.message?.toolCalls;
    expect(calls && jsonOf(calls)).toEqual(told.choices[0].message.tool_calls);
    const names: unknown[] = [];
    const request = fromJson(StreamChatCompletionRequestSchema, CHAT);
    for await (const { choices } of client.streamChatCompletion(request, { headers })) {
      const pieces = choices[0]?.delta?.toolCalls;
      if (pieces)
        names.push(...(jsonOf(pieces) as { function: { name?: string } }[]).map((one) => one.function.name));
    }
    expect(names[0]).toBe("weather");
  });

  test("gets the same response, unary and streamed", async () => {
    const client = createClient(ResponsesService, transport());
    const response = await client.createResponse(fromJson(CreateResponseRequestSchema, RESPONSE), {
      headers,
    });
    const told: { output: { arguments: string }[] } = await rest("/v1/responses", RESPONSE);
    expect(response.output.map((item) => item.arguments)).toEqual(told.output.map((item) => item.arguments));
    const types: string[] = [];
    const request = fromJson(StreamResponseRequestSchema, RESPONSE);
    for await (const { type } of client.streamResponse(request, { headers })) types.push(type);
    expect(types[0]).toBe("response.created");
    expect(types.at(-1)).toBe("response.completed");
  });
});
