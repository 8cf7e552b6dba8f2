import { Code, ConnectError } from "@connectrpc/connect";
import { DomainError } from "../../domain/errors.ts";
import type { Caller, GenerationStart } from "../../generations/generation-request.ts";
import type { Meter } from "../../generations/meter.ts";
import { digestOfRequest } from "../../rules/request-digest.ts";
import type { Interceptor, ReadCall } from "./interceptor.ts";
import { setLimitHeaders } from "./limit-rate.ts";

/** Holds the cost of a generation, runs it and charges it. A stream is charged when it ends. */
export function meter(meter: Meter): Interceptor<ReadCall> {
  return (next) => async (call) => {
    const { method, message } = call;
    const { invoke } = method;
    if (typeof invoke === "function") return await next(call);
    const caller = callerOf(call);
    const prompt = await invoke.prompt(message as never, call);
    if (!method.isStream) {
      call.result = invoke.respond((await meter.complete(caller, prompt)) as never, message as never, prompt);
      return await next(call);
    }
    const pieces = await meter.stream(caller, prompt);
    try {
      call.result = invoke.respond(pieces as never, message as never, prompt);
      await next(call);
    } finally {
      await pieces.return();
    }
  };
}

function callerOf(call: ReadCall): Caller {
  const { method, message, admitted, idempotencyKey } = call;
  const { readmit } = admitted;
  if (!readmit) throw new Error(`${method.rpc} was called without a key`);
  return {
    requestId: call.requestId,
    trace: call.trace,
    key: call.key,
    readmit,
    idempotency:
      idempotencyKey === undefined
        ? undefined
        : { key: idempotencyKey, digest: () => digestOfRequest(method.rpc, method.input, message, method.selectedBy) },
    signal: call.signal,
    endReason: () => endReasonOf(call),
    onModel: (modelId) => {
      call.model = modelId;
    },
    onStart: (start) => announce(call, start),
  };
}

function announce(call: ReadCall, { generation, loweredMaxTokens, minuteLimits }: GenerationStart): void {
  if (generation) {
    call.generation = generation;
    // A generation can outlive its call and keeps the prompt in memory.
    call.share.retain();
    generation.onSettled(() => call.share.release());
  } else call.setHeader("idempotency-replayed", "true");
  if (loweredMaxTokens !== undefined) call.setHeader("x-vx-max-tokens", String(loweredMaxTokens));
  if (minuteLimits.length > 0) setLimitHeaders(call, call.admitted.window, minuteLimits);
}

/** A disconnect in the last second before the deadline counts as the deadline: the caller's clock started earlier. */
const DEADLINE_SLACK_MS = 1_000;

/** Why the signal of a call was aborted: the deadline passed, the server stops, or the caller disconnected. */
function endReasonOf(call: ReadCall): ReturnType<Caller["endReason"]> {
  const { reason } = call.signal;
  if (reason instanceof DomainError) return "unavailable";
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) return "deadline_exceeded";
  const remainingMs = call.remainingMs() ?? Number.POSITIVE_INFINITY;
  return remainingMs < DEADLINE_SLACK_MS ? "deadline_exceeded" : "disconnected";
}
