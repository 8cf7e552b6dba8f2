import type { ModelTraits } from "../../domain/model.ts";
import type { ContentPart } from "../../domain/prompt.ts";
import { firstSetOf, type PromptProblem, type UnsizedPrompt } from "../prompt-problem.ts";
import { reasoningProblem } from "../reasoning-alone.ts";
import { isExtraField } from "../upstream-fields.ts";

/** What chat completions cannot express. */
export function openaiProblem(prompt: UnsizedPrompt, traits: ModelTraits): PromptProblem | undefined {
  if (prompt.options.task?.kind === "complete") return undefined;
  const message = prompt.messages.findIndex(
    ({ role, content }) => role === "tool" && typeof content !== "string" && content.some(isImage),
  );
  if (message >= 0) {
    return {
      field: "messages",
      message,
      description:
        "must not have images: the upstream of this model accepts only text as the result of a tool",
    };
  }
  const problem = isExtraField(traits, "reasoning_content") ? undefined : reasoningProblem(prompt);
  return problem ?? firstSetOf(isExtraField(traits, "top_k") ? ["suffix"] : ["top_k", "suffix"], prompt);
}

function isImage(part: ContentPart): boolean {
  return part.kind === "image";
}
