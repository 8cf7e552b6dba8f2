import type { ExampleValues } from "../../src/server/pages/openapi-page.ts";
import type { OperationExample } from "./operation-example.ts";

/** The parts of a generation that all formats show. */
export type ExampleCharge = {
  readonly id: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicros: number;
  readonly balanceMicros: number;
};

/** The operations in Anthropic's format, by operation id. */
export function messagesExamples(
  { id: model, missing }: ExampleValues["generation"],
  charge: ExampleCharge,
): Record<string, OperationExample> {
  const { inputTokens, outputTokens, costMicros, balanceMicros } = charge;
  const messages = [{ role: "user", content: "What is a ledger?" }];
  const system = "Answer in one short sentence.";
  const head = {
    id: charge.id.replace("gen_", "msg_"),
    type: "message",
    role: "assistant",
    model,
    container: null,
    diagnostics: null,
    stop_details: null,
  };
  const details = {
    cache_creation: null,
    inference_geo: null,
    server_tool_use: null,
    service_tier: null,
    speed: null,
  };
  const counts = {
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
  };
  const usage = {
    ...counts,
    output_tokens_details: { thinking_tokens: 0 },
    cost_micros: costMicros,
    ...details,
  };
  const unknown = { stop_reason: null, stop_sequence: null };
  return {
    CreateMessage: {
      missing,
      body: { model, max_tokens: 200, system, messages },
      response: {
        ...head,
        content: [{ type: "text", text: "A list of every movement." }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage,
        balance_micros: balanceMicros,
      },
      events: [
        {
          type: "message_start",
          message: {
            ...head,
            content: [],
            ...unknown,
            usage: {
              ...counts,
              input_tokens: 0,
              output_tokens: 0,
              output_tokens_details: { thinking_tokens: 0 },
              ...details,
            },
            balance_micros: null,
          },
        },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        {
          type: "content_block_delta",
          index: 0,
          delta: { type: "text_delta", text: "A list of every movement." },
        },
        { type: "content_block_stop", index: 0 },
        {
          type: "message_delta",
          delta: { stop_reason: "end_turn", container: null, stop_details: null, stop_sequence: null },
          usage,
          balance_micros: balanceMicros,
        },
        { type: "message_stop" },
      ],
    },
    CountTokens: {
      missing,
      body: { model, system, messages },
      response: { input_tokens: inputTokens },
    },
  };
}
