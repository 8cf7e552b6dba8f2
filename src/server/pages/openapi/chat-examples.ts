import type { OperationExample } from "./operation-example.ts";

type Chat = { readonly id: string; readonly created: number; readonly model: string };

/** `end` is the usage and the balance. */
export function chatExamples(
  chat: Chat,
  end: object,
  missing: string | undefined,
): Readonly<Record<string, OperationExample>> {
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
