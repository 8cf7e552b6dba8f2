import { firstSetOf, type PromptProblem, type UnsizedPrompt } from "../prompt-problem.ts";
import { isExtraField } from "../upstream-fields.ts";

const UNSUPPORTED = ["stop", "seed", "presence_penalty", "frequency_penalty", "suffix"] as const;

/** What the Responses API cannot express. */
export function openaiResponsesProblem(prompt: UnsizedPrompt): PromptProblem | undefined {
  return firstSetOf(isExtraField(prompt, "top_k") ? UNSUPPORTED : ["top_k", ...UNSUPPORTED], prompt);
}
