import type { Attributes } from "@opentelemetry/api";
import { entryIdOf } from "../../domain/ids.ts";
import { inputTokensOf, outputTokensOf } from "../../domain/usage.ts";
import type { TracedCall } from "../server-trace.ts";

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
