import type {
  CountTokensRequest,
  CreateMessageRequest,
  ThinkingConfig,
  ToolChoice as ToolChoiceParam,
  ToolParam,
} from "../../gen/vx/anthropic/v1/messages_pb.js";
import { DomainError } from "../domain/errors.ts";
import { nextTurn, TurnMeter } from "../domain/fairness.ts";
import {
  NO_OPTIONS,
  type PromptMessage,
  type PromptOptions,
  type ReasoningEffort,
  type Tool,
  type ToolChoice,
} from "../domain/prompt.ts";
import type { GenerationRequest } from "../generations/generation-request.ts";
import { isOtherTool } from "../rules/request-members.ts";
import { recordedUser } from "../rules/request-values.ts";
import { isAbsent, jsonIn } from "../rules/untyped-members.ts";
import { jsonOf } from "../rules/untyped-values.ts";
import { appendMessages, cacheControlOf, systemMessageOf } from "./content.ts";

/** Writing the inputs of tools as JSON text of this length takes up to three milliseconds. */
const WRITTEN_PER_TURN = 524_288;

/** Converts Anthropic's request, whose members are checked. */
export async function generationRequestOfMessage(request: CreateMessageRequest): Promise<GenerationRequest> {
  // For this reason, the tool runners of Anthropic's SDKs repeat the call without a stored thread.
  if (!isAbsent(jsonIn(request.thread))) throw new DomainError("thread_unsupported_request");
  return {
    ...(await promptOfMessage(request)),
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stop: request.stopSequences,
    options: { ...optionsOf(request), ...samplingOf(request) },
    user: recordedUser(request.metadata?.userId ?? ""),
    maxCostMicros: undefined,
  };
}

/** The part of a request whose tokens are counted. */
export async function generationRequestOfCount(request: CountTokensRequest): Promise<GenerationRequest> {
  return {
    ...(await promptOfMessage(request)),
    maxTokens: 1,
    temperature: undefined,
    stop: [],
    options: optionsOf(request),
    user: "",
    maxCostMicros: undefined,
  };
}

async function promptOfMessage(request: CreateMessageRequest | CountTokensRequest) {
  const messages: PromptMessage[] = [];
  const fields: string[] = [];
  const system = systemMessageOf(request.system && jsonOf(request.system));
  if (system) {
    messages.push(system);
    fields.push("system");
  }
  const meter = new TurnMeter(WRITTEN_PER_TURN);
  for (const [i, param] of request.messages.entries()) {
    const field = `messages[${i}]`;
    appendMessages(messages, param, field);
    while (fields.length < messages.length) fields.push(field);
    let written = 0;
    for (const { arguments: text } of messages.at(-1)?.toolCalls ?? []) written += text.length;
    if (meter.isDue(written)) await nextTurn();
  }
  return { format: "anthropic-messages" as const, model: request.model, messages, fields };
}

function optionsOf(request: CreateMessageRequest | CountTokensRequest): PromptOptions {
  const { tools, toolChoice, thinking, outputConfig } = request;
  const effort = effortOf(thinking, outputConfig?.effort);
  return {
    ...(tools.length > 0 ? { tools: tools.flatMap(toolsOf) } : {}),
    ...(toolChoice ? toolChoiceOf(toolChoice) : {}),
    ...(effort === undefined ? {} : { reasoningEffort: effort }),
    ...(thinking?.budgetTokens === undefined ? {} : { reasoningBudgetTokens: thinking.budgetTokens }),
    ...(outputConfig?.format?.schema
      ? {
          responseFormat: {
            kind: "json_schema",
            name: "response",
            schema: outputConfig.format.schema,
            strict: true,
          },
        }
      : {}),
  };
}

function samplingOf({ topP, topK, extraFields }: CreateMessageRequest): PromptOptions {
  if (topP === undefined && topK === undefined && extraFields === undefined) return NO_OPTIONS;
  return {
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(extraFields === undefined ? {} : { extraFields: { format: "anthropic-messages", fields: extraFields } }),
  };
}

/** None for a tool of another type, which is left out. */
function toolsOf(tool: ToolParam, i: number): Tool | [] {
  const field = `tools[${i}]`;
  const { name, description, strict, inputSchema, cacheControl } = tool;
  if (isOtherTool(tool, "custom")) return [];
  if (!inputSchema) throw DomainError.ofField(`${field}.input_schema`, "is required");
  return {
    name,
    description,
    parameters: inputSchema,
    strict,
    ...cacheControlOf((cacheControl && jsonOf(cacheControl)) ?? undefined, field),
  };
}

function toolChoiceOf({ type, name, disableParallelToolUse }: ToolChoiceParam): PromptOptions {
  if (type === "tool" && name === "") throw DomainError.ofField("tool_choice.name", "is required");
  if (type !== "tool" && name !== "") {
    throw DomainError.ofField("tool_choice.name", 'is only allowed with the type "tool"');
  }
  return {
    toolChoice: choiceOf(type, name),
    ...(disableParallelToolUse === undefined ? {} : { parallelToolCalls: !disableParallelToolUse }),
  };
}

function choiceOf(type: string, name: string): ToolChoice {
  switch (type) {
    case "tool":
      return { kind: "tool", name };
    case "any":
      return { kind: "required" };
    default:
      return { kind: type === "none" ? "none" : "auto" };
  }
}

/** A budget sets the effort for upstreams that have no budgets. */
function effortOf(thinking: ThinkingConfig | undefined, effort: string | undefined): ReasoningEffort | undefined {
  const named = effort === undefined ? undefined : effort === "low" || effort === "medium" ? effort : "high";
  switch (thinking?.type) {
    case "disabled":
      return "none";
    case "adaptive":
      return named ?? "medium";
    case "enabled":
      return named ?? effortOfBudget(thinking.budgetTokens);
    default:
      return named;
  }
}

function effortOfBudget(tokens: number | undefined): ReasoningEffort {
  if (tokens === undefined) {
    throw DomainError.ofField("thinking.budget_tokens", 'is required with the type "enabled"');
  }
  if (tokens <= 4_096) return "low";
  return tokens <= 16_384 ? "medium" : "high";
}
