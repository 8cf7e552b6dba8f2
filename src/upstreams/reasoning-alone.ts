import type { PromptMessage } from "../domain/prompt.ts";
import type { PromptProblem, UnsizedPrompt } from "./prompt-problem.ts";

/** Whether nothing is left of a message without its reasoning, which an upstream that did not create it cannot get. */
export function isReasoningAlone({ content, toolCalls, reasoning, toolCallId }: PromptMessage): boolean {
  return content.length === 0 && reasoning !== undefined && !toolCalls && toolCallId === undefined;
}

/** The upstream refuses a request without messages. */
export function reasoningProblem({ messages }: UnsizedPrompt): PromptProblem | undefined {
  if (messages.length === 0 || !messages.every(isReasoningAlone)) return undefined;
  return { field: "messages", description: "must have a message with more than reasoning" };
}
