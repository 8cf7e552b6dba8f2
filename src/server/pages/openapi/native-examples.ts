import type { Model } from "../../../domain/model.ts";
import { formatMicros } from "../../../domain/money.ts";
import { maxCostOf } from "../../../domain/price.ts";
import type { ExampleModel, ExampleModels } from "../../../models/built-in.ts";
import type { OperationExample } from "./operation-example.ts";

type Done = { readonly id: string; readonly usage: object; readonly balance_micros: number };

/** The examples of generations in the native format, with the usage and the charge of `done`. */
export function nativeExamples(
  { generation, tools }: ExampleModels,
  done: Done,
): Readonly<Record<string, OperationExample>> {
  const { model, missing } = generation;
  const { id, usage, balance_micros } = done;
  const body = {
    model: model.id,
    messages: [
      { role: "system", content: "Answer in one short sentence." },
      { role: "user", content: "What is a ledger?" },
    ],
    max_tokens: 200,
    temperature: 0.7,
  };
  const response = ({ model }: ExampleModel, message: object, finish_reason: string) => ({
    id,
    model: model.id,
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
      response: response(generation, { content: "A list of every movement." }, "stop"),
      events: [delta("A list of "), delta("every movement."), { done }],
      more: {
        [tools.missing ? "With a tool (supported by no model of this server)" : "With a tool"]: {
          body: toolRequest(tools.model),
          response: response(tools, TOOL_REPLY, "tool_calls"),
        },
      },
    },
    QuoteGenerate: { missing, body, response: quoteExample(model) },
  };
}

function toolRequest(model: Model) {
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  };
  return {
    model: model.id,
    messages: [{ role: "user", content: "What is the weather in Bern?" }],
    tools: [{ name: "get_weather", description: "The weather in a city.", parameters, strict: true }],
    tool_choice: "required",
    max_tokens: 200,
  };
}

const TOOL_REPLY = {
  tool_calls: [{ id: "call_1", name: "get_weather", arguments: '{"city":"Bern"}' }],
};

function quoteExample({ id, prices, promptOverheadTokens: { base, perMessage } }: Model) {
  // The bytes of both messages and their delimiters bound the tokens.
  const inputTokens = 46 + 2 * 4 + base + 2 * perMessage;
  const hold = maxCostOf(prices, { inputTokens, outputTokens: 200, images: 0 });
  return {
    model: id,
    input_tokens: 18,
    max_tokens: 200,
    hold_micros: Number(hold),
    hold: formatMicros(hold),
    fits: true,
    refusal: "",
    limit_id: "",
  };
}
