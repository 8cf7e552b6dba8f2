import { formatMicros } from "../../src/domain/money.ts";
import type { ExampleValues } from "../../src/server/pages/openapi-page.ts";
import type { ExampleCharge } from "./messages-examples.ts";
import type { OperationExample } from "./operation-example.ts";

type Chat = { readonly id: string; readonly created: number; readonly model: string };

/** `end` is the usage and the balance. */
export function chatExamples(chat: Chat, end: object, missing: string): Readonly<Record<string, OperationExample>> {
  const finish_reason = "stop";
  const chunk = (delta: object, finishReason: string | null) => ({
    ...chat,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    usage: null,
    balance_micros: null,
  });
  return {
    CreateChatCompletion: {
      missing,
      body: {
        model: chat.model,
        messages: [
          { role: "developer", content: "Answer in one short sentence." },
          { role: "user", content: [{ type: "text", text: "What is a ledger?" }] },
        ],
        max_completion_tokens: 200,
      },
      response: {
        ...chat,
        object: "chat.completion",
        choices: [
          {
            index: 0,
            message: {
              role: "assistant",
              content: "A list of every movement.",
              refusal: null,
              reasoning_content: null,
            },
            logprobs: null,
            finish_reason,
          },
        ],
        ...end,
      },
      events: [
        chunk({ role: "assistant", content: "A list of " }, null),
        chunk({ content: "every movement." }, null),
        chunk({}, finish_reason),
      ],
    },
  };
}

/** The operations in the format of OpenAI's Responses API, by operation id. */
export function responsesExamples(
  { id: model, missing }: ExampleValues["generation"],
  charge: ExampleCharge,
): Record<string, OperationExample> {
  const instructions = "Answer in one short sentence.";
  const started = {
    id: charge.id.replace("gen_", "resp_"),
    object: "response",
    created_at: 1_763_683_200,
    status: "in_progress",
    model,
    output: [],
    usage: null,
    error: null,
    incomplete_details: null,
    instructions,
    ...RESPONSE_SETTINGS,
    balance_micros: null,
  };
  const itemId = charge.id.replace("gen_", "msg_");
  const part = { type: "output_text", text: "A list of every movement.", annotations: [], logprobs: [] };
  const item = { type: "message", id: itemId, status: "completed", role: "assistant", content: [part] };
  const response = {
    ...started,
    status: "completed",
    output: [item],
    usage: usageOf(charge),
    balance_micros: charge.balanceMicros,
  };
  const place = { output_index: 0, item_id: itemId, content_index: 0 };
  const events = [
    { type: "response.created", response: started },
    { type: "response.in_progress", response: started },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    },
    { type: "response.content_part.added", ...place, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...place, delta: part.text, logprobs: [] },
    { type: "response.output_text.done", ...place, text: part.text, logprobs: [] },
    { type: "response.content_part.done", ...place, part },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response },
  ];
  return {
    CreateResponse: {
      missing,
      body: { model, instructions, input: "What is a ledger?", max_output_tokens: 200 },
      response,
      events: events.map((event, i) => ({ ...event, sequence_number: i })),
    },
  };
}

const RESPONSE_SETTINGS = {
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: true,
  text: { format: { type: "text" }, verbosity: "medium" },
  reasoning: { effort: null, summary: null },
  max_output_tokens: 200,
  temperature: null,
  top_p: null,
  metadata: {},
  user: null,
  safety_identifier: null,
  prompt_cache_key: null,
  store: false,
  previous_response_id: null,
  access_programs: null,
  background: false,
  truncation: "disabled",
  service_tier: "default",
  top_logprobs: 0,
  max_tool_calls: null,
};

function usageOf({ inputTokens, outputTokens, costMicros }: ExampleCharge) {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, image_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
    cost_micros: costMicros,
  };
}

/** The example of a completion, with the ids, the usage and the balance of the example of a chat completion. */
export function completionExamples(
  { id: model, missing }: ExampleValues["completion"],
  chat: object,
  end: object,
): Readonly<Record<string, OperationExample>> {
  const head = { ...chat, model, object: "text_completion" };
  const choice = (text: string, finish_reason: string | null) => ({
    choices: [{ text, index: 0, logprobs: null, finish_reason }],
  });
  const chunk = (text: string, finish_reason: string | null) => ({
    ...head,
    ...choice(text, finish_reason),
    usage: null,
    balance_micros: null,
  });
  return {
    CreateCompletion: {
      missing,
      body: {
        model,
        prompt: "def total(entries):\n    return ",
        suffix: "\n\nprint(total([1, 2]))",
        max_tokens: 50,
        stop: ["\n\n"],
      },
      response: { ...head, ...choice("sum(entries)", "stop"), ...end },
      events: [chunk("sum(", null), chunk("entries)", null), chunk("", "stop")],
    },
  };
}

const ID = "gen_01kam4xy3xfk89k8z8sr4cvyj7";
const INPUT_TOKENS = 8;
const COST_MICROS = 1n;
const BALANCE_MICROS = 9_999_999;
const TEXTS = ["What is a ledger?", "What is a hold?"];
const VECTORS = [
  [0.5, -0.5, 0.5, 0.5],
  [0.5, 0.5, -0.5, 0.5],
];

/** The examples of embeddings. */
export function embeddingExamples({
  id: model,
  missing,
}: ExampleValues["embeddings"]): Readonly<Record<string, OperationExample>> {
  return {
    Embed: {
      missing,
      body: { model, input: TEXTS, dimensions: 4 },
      response: {
        id: ID,
        model,
        embeddings: VECTORS.map((values, index) => ({ index, values })),
        usage: {
          input_tokens: INPUT_TOKENS,
          output_tokens: 0,
          cost_micros: Number(COST_MICROS),
          cost: formatMicros(COST_MICROS),
          cached_input_tokens: 0,
          cache_write_tokens: 0,
          reasoning_tokens: 0,
          image_tokens: 0,
        },
        balance_micros: BALANCE_MICROS,
      },
    },
    CreateEmbeddings: {
      missing,
      body: { model, input: TEXTS, dimensions: 4 },
      response: {
        object: "list",
        data: VECTORS.map((embedding, index) => ({ object: "embedding", index, embedding })),
        model,
        usage: { prompt_tokens: INPUT_TOKENS, total_tokens: INPUT_TOKENS, cost_micros: Number(COST_MICROS) },
        id: ID,
        balance_micros: BALANCE_MICROS,
      },
    },
  };
}
