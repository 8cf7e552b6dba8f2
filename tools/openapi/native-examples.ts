import type { ExampleValues } from "../../src/server/pages/openapi-page.ts";
import type { OperationExample } from "./operation-example.ts";

type Done = { readonly id: string; readonly usage: object; readonly balance_micros: number };

/** The examples of generations in the native format, with the usage and the charge of `done`. */
export function nativeExamples({ generation, tools }: ExampleValues, done: Done): Readonly<Record<string, OperationExample>> {
  const { id: model, missing } = generation;
  const { id, usage, balance_micros } = done;
  const body = {
    model,
    messages: [
      { role: "system", content: "Answer in one short sentence." },
      { role: "user", content: "What is a ledger?" },
    ],
    max_tokens: 200,
    temperature: 0.7,
  };
  const response = (model: string, message: object, finish_reason: string) => ({
    id,
    model,
    message: {
      role: "assistant",
      content: "",
      parts: [],
      tool_call_id: "",
      tool_calls: [],
      reasoning: [],
      ...message,
    },
    finish_reason,
    usage,
    balance_micros,
    max_tokens: null,
  });
  const delta = (content: string) => ({ delta: { content } });
  return {
    Generate: {
      missing,
      body,
      response: response(model, { content: "A list of every movement." }, "stop"),
      events: [delta("A list of "), delta("every movement."), { done }],
      more: {
        "With a tool": {
          summary: `With a tool${tools.note}`,
          body: toolRequest(tools.id),
          response: response(tools.id, TOOL_REPLY, "tool_calls"),
        },
      },
    },
    QuoteGenerate: { missing, body, response: quoteExample(generation) },
  };
}

function toolRequest(model: string) {
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  };
  return {
    model,
    messages: [{ role: "user", content: "What is the weather in Bern?" }],
    tools: [{ name: "get_weather", description: "The weather in a city.", parameters, strict: true }],
    tool_choice: "required",
    max_tokens: 200,
  };
}

const TOOL_REPLY = {
  tool_calls: [{ id: "call_1", name: "get_weather", arguments: '{"city":"Bern"}' }],
};

function quoteExample({ id, holdMicros, hold }: ExampleValues["generation"]) {
  return {
    model: id,
    input_tokens: 18,
    max_tokens: 200,
    hold_micros: holdMicros,
    hold,
    fits: true,
    refusal: "",
    limit_id: "",
  };
}
