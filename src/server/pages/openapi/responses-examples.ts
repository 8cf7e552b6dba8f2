import type { ExampleModel } from "../../../models/example-model.ts";
import type { ExampleCharge } from "./messages-examples.ts";
import type { OperationExample } from "./operation-example.ts";

/** The operations in the format of OpenAI's Responses API, by operation id. */
export function responsesExamples(
  { model, missing }: ExampleModel,
  charge: ExampleCharge,
): Record<string, OperationExample> {
  const instructions = "Answer in one short sentence.";
  const started = {
    id: charge.id.replace("gen_", "resp_"),
    object: "response",
    created_at: 1_763_683_200,
    status: "in_progress",
    model: model.id,
    output: [],
    usage: null,
    error: null,
    incomplete_details: null,
    instructions,
    ...SETTINGS,
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
      body: { model: model.id, instructions, input: "What is a ledger?", max_output_tokens: 200 },
      response,
      events: events.map((event, i) => ({ ...event, sequence_number: i })),
    },
  };
}

const SETTINGS = {
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
