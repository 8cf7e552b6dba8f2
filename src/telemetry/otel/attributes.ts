import type { Attributes } from "@opentelemetry/api";
import type { AttemptResult, StartedAttempt } from "../../domain/call-trace.ts";
import { entryIdOf } from "../../domain/ids.ts";
import type { UpstreamSettings } from "../../domain/model.ts";
import { inputTokensOf, outputTokensOf } from "../../domain/price.ts";
import type { TracedCall } from "../telemetry.ts";

/** By the conventions for HTTP and for RPC. Without a route, the path is the caller's, so it is not part of the name. */
export function nameOfCall({ route, rpc, protocol }: TracedCall): string {
  if (route) return `${route.verb} ${route.path}`;
  return protocol === "rest" ? "HTTP" : rpc;
}

/** The path is left out, because callers can write anything into it; the route identifies the method. */
export function callAttributes(call: TracedCall): Attributes {
  const { charge } = call;
  const attributes: Attributes = protocolAttributes(call);
  attributes["vx.request_id"] = call.requestId;
  if (call.reason !== undefined) attributes["error.type"] = call.reason;
  if (call.accountId !== undefined) attributes["vx.account_id"] = call.accountId;
  if (call.keyId !== undefined) attributes["vx.key_id"] = call.keyId;
  if (call.operatorId !== undefined) attributes["vx.operator_id"] = call.operatorId;
  if (call.model !== undefined) attributes["vx.model"] = call.model;
  if (call.generationId !== undefined) attributes["vx.generation_id"] = call.generationId;
  if (!charge) return attributes;
  if (call.generationId !== undefined) attributes["vx.ledger_entry_id"] = entryIdOf(call.generationId);
  attributes["vx.input_tokens"] = inputTokensOf(charge.usage);
  attributes["vx.output_tokens"] = outputTokensOf(charge.usage);
  attributes["vx.cost_micros"] = Number(charge.amountMicros);
  return attributes;
}

function protocolAttributes({ protocol, route, rpc, code, status }: TracedCall): Attributes {
  if (protocol === "rest") {
    const attributes: Attributes = {};
    if (route) {
      attributes["http.request.method"] = route.verb;
      attributes["http.route"] = route.path;
    }
    if (status !== undefined) attributes["http.response.status_code"] = status;
    return attributes;
  }
  return {
    "rpc.system.name": protocol === "connect" ? "connectrpc" : "grpc",
    "rpc.method": rpc,
    "rpc.response.status_code": code.toUpperCase(),
  };
}

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

export function attemptAttributes(attempt: StartedAttempt, result: AttemptResult, oldNames: boolean): Attributes {
  const { prompt, number } = attempt;
  const { usage, startedAtMs, firstPieceAtMs } = result;
  const attributes = requestAttributes(attempt);
  attributes["vx.upstream.attempt"] = number;
  attributes["gen_ai.request.max_tokens"] = prompt.maxTokens;
  if (prompt.temperature !== undefined) attributes["gen_ai.request.temperature"] = prompt.temperature;
  if (prompt.options.topP !== undefined) attributes["gen_ai.request.top_p"] = prompt.options.topP;
  if (firstPieceAtMs !== undefined) attributes["gen_ai.response.time_to_first_chunk"] = (firstPieceAtMs - startedAtMs) / 1_000;
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
