import type { Attributes } from "@opentelemetry/api";
import type { AttemptResult, StartedAttempt } from "../../domain/call-trace.ts";
import type { UpstreamSettings } from "../../domain/model.ts";
import { inputTokensOf, outputTokensOf } from "../../domain/usage.ts";

type Request = Pick<StartedAttempt, "model" | "settings" | "prompt">;

/**
 * The attributes by which the GenAI conventions of OpenTelemetry identify a request to a model. Content is never among
 * them, nor are stop sequences, which are texts of the caller.
 */
export function requestAttributes({ model, settings, prompt }: Request): Attributes {
  return {
    "gen_ai.operation.name": operationOf(prompt),
    "gen_ai.provider.name": PROVIDERS[settings.kind],
    "gen_ai.request.model": settings.kind === "sandbox" ? model.id : settings.model,
    ...addressOf(settings),
  };
}

export function attemptAttributes(
  attempt: StartedAttempt,
  result: AttemptResult,
  oldNames: boolean,
): Attributes {
  const { prompt, number } = attempt;
  const { usage, startedAtMs, firstPieceAtMs } = result;
  const attributes = requestAttributes(attempt);
  attributes["vx.upstream.attempt"] = number;
  attributes["gen_ai.request.max_tokens"] = prompt.maxTokens;
  if (prompt.temperature !== undefined) attributes["gen_ai.request.temperature"] = prompt.temperature;
  if (prompt.options.topP !== undefined) attributes["gen_ai.request.top_p"] = prompt.options.topP;
  if (firstPieceAtMs !== undefined)
    attributes["gen_ai.response.time_to_first_chunk"] = (firstPieceAtMs - startedAtMs) / 1_000;
  if (result.finishReason !== undefined) attributes["gen_ai.response.finish_reasons"] = [result.finishReason];
  if (result.outcome !== "ok") attributes["error.type"] = result.outcome;
  if (oldNames) attributes["gen_ai.system"] = attributes["gen_ai.provider.name"];
  if (!usage) return attributes;
  attributes["gen_ai.usage.input_tokens"] = inputTokensOf(usage);
  attributes["gen_ai.usage.output_tokens"] = outputTokensOf(usage);
  if (usage.cachedInput > 0) attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cachedInput;
  if (usage.cacheWrite > 0) {
    attributes["gen_ai.usage.cache_write.input_tokens"] = usage.cacheWrite;
    if (oldNames) attributes["gen_ai.usage.cache_creation.input_tokens"] = usage.cacheWrite;
  }
  if (usage.reasoning > 0) attributes["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning;
  return attributes;
}

export function operationOf({ options: { task } }: Request["prompt"]): string {
  if (task?.kind === "embed") return "embeddings";
  return task?.kind === "complete" ? "text_completion" : "chat";
}

const PROVIDERS: Readonly<Record<UpstreamSettings["kind"], string>> = {
  openai: "openai",
  "openai-responses": "openai",
  anthropic: "anthropic",
  sandbox: "vx.sandbox",
};

const ADDRESSES = new WeakMap<UpstreamSettings, Attributes>();

function addressOf(settings: UpstreamSettings): Attributes {
  const known = ADDRESSES.get(settings);
  if (known) return known;
  const attributes: Attributes = {};
  if (settings.kind !== "sandbox") {
    const { hostname, port, protocol } = new URL(settings.baseUrl);
    attributes["server.address"] = hostname;
    attributes["server.port"] = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  }
  ADDRESSES.set(settings, attributes);
  return attributes;
}
