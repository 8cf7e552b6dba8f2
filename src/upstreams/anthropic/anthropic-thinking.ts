import type { Prompt, PromptMessage, ReasoningEffort } from "../../domain/prompt.ts";
import { isOwnReasoning } from "./anthropic-messages.ts";

/**
 * Claude models from 4.6 on choose how long they think, and the later ones refuse a budget. Older ones, and other models on
 * servers with this API, accept only a budget.
 */
const ADAPTIVE_MODELS = /claude-(?!instant|[123]\b|[123][-.]|(?:opus|sonnet|haiku)-4(?!-[6-9](?!\d)))/i;

/** Limits of the API on a budget. */
const MIN_BUDGET = 1_024;
const MAX_BUDGET = 32_000;

/** The part of max_tokens that the model may think with. */
const BUDGET_SHARES = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8 } as const;

/** The API has no lower effort than "low". */
const EFFORTS = { minimal: "low", low: "low", medium: "medium", high: "high" } as const;

type Thinking = { readonly thinking?: object; readonly effort?: string };

const UNSET: Thinking = {};

export function thinkingOf({ options, maxTokens, messages }: Prompt, model: string): Thinking {
  const { reasoningEffort, reasoningBudgetTokens: wanted } = options;
  if (reasoningEffort === undefined) return UNSET;
  if (ADAPTIVE_MODELS.test(model)) return adaptive(reasoningEffort);
  if (reasoningEffort === "none" || maxTokens <= MIN_BUDGET || lacksReasoning(messages)) return UNSET;
  // The API requires a budget below max_tokens, which a hold can lower.
  const budget = Math.min(wanted ?? Math.floor(maxTokens * BUDGET_SHARES[reasoningEffort]), maxTokens - 1);
  return {
    thinking: { type: "enabled", budget_tokens: Math.min(Math.max(budget, MIN_BUDGET), MAX_BUDGET) },
  };
}

function adaptive(effort: ReasoningEffort): Thinking {
  if (effort === "none") return { thinking: { type: "disabled" } };
  return { thinking: { type: "adaptive" }, effort: EFFORTS[effort] };
}

/**
 * With a budget, the assistant message that the results of tools answer must begin with its reasoning. Clients of
 * other formats do not send it back.
 */
function lacksReasoning(messages: readonly PromptMessage[]): boolean {
  const last = messages.findLast(({ role }) => role !== "tool" && role !== "system");
  return last?.role === "assistant" && !last.reasoning?.some(isOwnReasoning);
}
