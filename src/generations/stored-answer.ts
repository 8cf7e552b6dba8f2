import { base64OfVector, vectorOfBase64 } from "../domain/base64.ts";
import { DomainError, isReason, type Reason } from "../domain/errors.ts";
import type { FinishReason, Output } from "../domain/output.ts";
import type { Reply } from "./generation-request.ts";

/** The response for a retry with the same idempotency key. Tokens and amounts are in the ledger row. */
export type StoredAnswer = Omit<Reply, "model" | "usage" | "costMicros" | "balanceMicros"> & {
  /** Why the response was interrupted after its content; undefined for a complete reply. */
  readonly failure: Reason | undefined;
};

type Encoded = {
  readonly id: string;
  readonly content: string;
  readonly reasoning?: Output["reasoning"];
  readonly tool_calls?: Output["toolCalls"];
  /** In base64. */
  readonly vectors?: readonly string[];
  readonly finish_reason: FinishReason;
  readonly lowered_max_tokens?: number;
  readonly stop_sequence?: string | null;
  readonly failure?: string;
};

export function encodeAnswer(answer: StoredAnswer): string {
  const { id, output, vectors, finishReason, loweredMaxTokens, stopSequence, failure } = answer;
  const { text: content, reasoning, toolCalls } = output;
  return JSON.stringify({
    id,
    content,
    ...(reasoning.length > 0 ? { reasoning } : {}),
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
    ...(vectors ? { vectors: vectors.map(base64OfVector) } : {}),
    finish_reason: finishReason,
    ...(loweredMaxTokens === undefined ? {} : { lowered_max_tokens: loweredMaxTokens }),
    ...(stopSequence === undefined ? {} : { stop_sequence: stopSequence }),
    ...(failure === undefined ? {} : { failure }),
  } satisfies Encoded);
}

export function decodeAnswer(json: string): StoredAnswer {
  const {
    id,
    content,
    reasoning = [],
    tool_calls = [],
    vectors,
    finish_reason,
    lowered_max_tokens,
    stop_sequence,
    failure,
  } = JSON.parse(json) as Encoded;
  return {
    id,
    output: { text: content, reasoning, toolCalls: tool_calls },
    vectors: vectors?.map(storedVector),
    finishReason: finish_reason,
    loweredMaxTokens: lowered_max_tokens,
    stopSequence: stop_sequence,
    failure: failure === undefined || isReason(failure) ? failure : "internal",
  };
}

function storedVector(base64: string): Float32Array {
  const vector = vectorOfBase64(base64);
  if (!vector) throw new Error("a stored answer has an invalid vector");
  return vector;
}

/**
 * The error that follows replayed content. It does not repeat the first response's error, which may no longer
 * apply.
 */
export function interrupted(failure: Reason): DomainError {
  return new DomainError("generation_interrupted", {
    message: `The response of the first call with this idempotency key was interrupted: ${CAUSES[failure] ?? "it failed"}. Its usage was charged once. Send a new idempotency key to generate again.`,
    metadata: { first_reason: failure },
  });
}

const CAUSES: Partial<Record<Reason, string>> = {
  upstream_error: "the upstream failed",
  unavailable: "the server stopped",
  revoked_api_key: "its API key was revoked",
  insufficient_scope: "its API key lost the scope",
  account_suspended: "its account was suspended",
  deadline_exceeded: "it exceeded its time limit",
};
