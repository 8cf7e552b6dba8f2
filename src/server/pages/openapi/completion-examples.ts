import type { ExampleModel } from "../../../models/example-model.ts";
import type { OperationExample } from "./operation-example.ts";

/** The example of a completion, with the ids, the usage and the balance of the example of a chat completion. */
export function completionExamples(
  { model: { id: model }, missing }: ExampleModel,
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
