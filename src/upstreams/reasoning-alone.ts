import type { PromptMessage } from "../domain/prompt.ts";
import type { PromptProblem, UnsizedPrompt } from "./prompt-problem.ts";

/** Whether a message consists only of reasoning, which no upstream accepts except the one that created it. */
export function isReasoningAlone({ content, toolCalls, reasoning, toolCallId }: PromptMessage): boolean {
  return content.length === 0 && reasoning !== undefined && !toolCalls && toolCallId === undefined;
}

/** The upstream refuses a request without messages. */
export function reasoningProblem({ messages }: UnsizedPrompt): PromptProblem | undefined {
  if (messages.length === 0 || !messages.every(isReasoningAlone)) return undefined;
  return { field: "messages", description: "must have a message with more than reasoning" };
}
