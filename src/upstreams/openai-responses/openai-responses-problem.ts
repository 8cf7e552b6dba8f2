import type { ModelTraits } from "../../domain/model.ts";
import { firstSetOf, type PromptProblem, type UnsizedPrompt } from "../prompt-problem.ts";
import { reasoningProblem } from "../reasoning-alone.ts";
import { isExtraField } from "../upstream-fields.ts";

const UNSUPPORTED = ["stop", "seed", "presence_penalty", "frequency_penalty", "suffix"] as const;

/** What the Responses API cannot express. */
export function openaiResponsesProblem(
  prompt: UnsizedPrompt,
  traits: ModelTraits,
): PromptProblem | undefined {
  return (
    reasoningProblem(prompt) ??
    firstSetOf(isExtraField(traits, "top_k") ? UNSUPPORTED : ["top_k", ...UNSUPPORTED], prompt)
  );
}
