import { DomainError, isReason, type Reason } from "../domain/errors.ts";
import type { FinishReason } from "../domain/prompt.ts";

/** The response for a retry with the same idempotency key. Tokens and amounts are in the ledger row. */
export type StoredAnswer = {
  readonly id: string;
  readonly content: string;
  readonly finishReason: FinishReason;
  /** Why the response was interrupted after its content; undefined for a complete reply. */
  readonly failure: Reason | undefined;
};

export function encodeAnswer({ id, content, finishReason, failure }: StoredAnswer): string {
  return JSON.stringify({ id, content, finish_reason: finishReason, failure });
}

export function decodeAnswer(text: string): StoredAnswer {
  const { id, content, finish_reason, failure } = JSON.parse(text) as Record<string, string>;
  if (id === undefined || content === undefined) throw new DomainError("internal");
  return {
    id,
    content,
    finishReason: finish_reason as FinishReason,
    failure: failure === undefined || isReason(failure) ? failure : "internal",
  };
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
  deadline_exceeded: "it exceeded its time limit",
};
