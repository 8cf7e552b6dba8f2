import type { RemoteKind } from "../../../src/domain/model.ts";
import type { FinishReason } from "../../../src/domain/output.ts";

/** The reply of a fake upstream, before it is encoded. */
export type Reply = {
  readonly pieces: readonly string[];
  readonly finishReason: FinishReason;
  /** Values as sent, of any type, so that a test can send invalid ones. Undefined: no usage is reported. */
  readonly usage: { readonly input: unknown; readonly output: unknown } | undefined;
};

/** The encoding of one kind of server. */
export type Wire = {
  readonly name: string;
  readonly kind: RemoteKind;
  readonly path: string;
  readonly contentType: string;
  /**
   * The output before, for and after the pieces. A server that does not stream sends all of it at the end.
   */
  begin(reply: Reply): string;
  piece(text: string): string;
  end(reply: Reply): string;
  /** An error inside a 200 response. */
  error(type: string, message: string): string;
};

export const openaiWire: Wire = {
  name: "openai, streamed",
  kind: "openai",
  path: "/v1/chat/completions",
  contentType: "text/event-stream",
  begin: () => chunk({ role: "assistant", content: "" }, null),
  piece: (text) => chunk({ content: text }, null),
  end: ({ finishReason, usage }) =>
    `${chunk({}, finishReason) + (usage ? data({ ...COMPLETION, choices: [], usage: openaiUsage(usage) }) : "")}data: [DONE]\n\n`,
  error: (type, message) => data({ error: { type, message } }),
};

export const openaiJsonWire: Wire = {
  name: "openai, whole in spite of stream",
  kind: "openai",
  path: "/v1/chat/completions",
  contentType: "application/json; charset=utf-8",
  begin: () => "",
  piece: () => "",
  end: ({ pieces, finishReason, usage }) =>
    JSON.stringify({
      ...COMPLETION,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: pieces.join("") }, finish_reason: finishReason }],
      usage: usage && openaiUsage(usage),
    }),
  error: (type, message) => JSON.stringify({ error: { type, message } }),
};

export const anthropicWire: Wire = {
  name: "anthropic",
  kind: "anthropic",
  path: "/v1/messages",
  contentType: "text/event-stream",
  begin: ({ usage }) =>
    event("message_start", {
      message: { id: "msg_1", type: "message", role: "assistant", content: [], usage: { input_tokens: usage?.input } },
    }) +
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
    event("ping", {}),
  piece: (text) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  end: ({ finishReason, usage }) =>
    event("content_block_stop", { index: 0 }) +
    event("message_delta", {
      delta: { stop_reason: finishReason === "length" ? "max_tokens" : "end_turn", stop_sequence: null },
      usage: usage && { output_tokens: usage.output },
    }) +
    event("message_stop", {}),
  error: (type, message) => event("error", { error: { type, message } }),
};

export const openaiResponsesWire: Wire = {
  name: "openai-responses, streamed",
  kind: "openai-responses",
  path: "/v1/responses",
  contentType: "text/event-stream",
  begin: () =>
    event("response.created", { response: { ...RESPONSE, status: "in_progress", output: [] } }) +
    event("response.output_item.added", {
      output_index: 0,
      item: { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] },
    }) +
    event("response.content_part.added", { ...PART, part: { type: "output_text", text: "", annotations: [] } }),
  piece: (text) => event("response.output_text.delta", { ...PART, delta: text }),
  end: (reply) => {
    const response = responseOf(reply);
    return (
      event("response.output_text.done", { ...PART, text: reply.pieces.join("") }) +
      event("response.output_item.done", { output_index: 0, item: response.output[0] }) +
      event(`response.${response.status}`, { response })
    );
  },
  error: (type, message) => event("error", { code: type, message, param: null }),
};

const openaiResponsesJsonWire: Wire = {
  name: "openai-responses, whole in spite of stream",
  kind: "openai-responses",
  path: "/v1/responses",
  contentType: "application/json",
  begin: () => "",
  piece: () => "",
  end: (reply) => JSON.stringify(responseOf(reply)),
  error: (type, message) => JSON.stringify({ ...RESPONSE, status: "failed", error: { code: type, message } }),
};

/** Every encoding; the first of a kind is the usual one. */
export const WIRES_OF_KIND: Readonly<Record<RemoteKind, readonly Wire[]>> = {
  openai: [openaiWire, openaiJsonWire],
  "openai-responses": [openaiResponsesWire, openaiResponsesJsonWire],
  anthropic: [anthropicWire],
};

const COMPLETION = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "m" };

const RESPONSE = { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "m", error: null };
const PART = { item_id: "msg_1", output_index: 0, content_index: 0 };

function responseOf({ pieces, finishReason, usage }: Reply) {
  const isCut = finishReason === "length";
  const text = { type: "output_text", text: pieces.join(""), annotations: [] };
  return {
    ...RESPONSE,
    status: isCut ? "incomplete" : "completed",
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    output: [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: [text] }],
    usage: usage && {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 0,
    },
  };
}

function chunk(delta: object, finishReason: string | null): string {
  return data({ ...COMPLETION, choices: [{ index: 0, delta, finish_reason: finishReason }] });
}

function openaiUsage({ input, output }: NonNullable<Reply["usage"]>): object {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: Number(input) + Number(output) };
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function event(type: string, value: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`;
}
