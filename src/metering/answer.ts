import { DomainError, isReason, type Reason } from "../domain/errors.ts";
import type { FinishReason } from "../domain/generation.ts";

/** What the next call with the same idempotency key is answered; tokens and money are in the ledger row. */
export type StoredAnswer = {
  readonly id: string;
  readonly content: string;
  readonly finishReason: FinishReason;
  /** Why a stream broke off after what it had said. */
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
    failure: failure !== undefined && isReason(failure) ? failure : undefined,
  };
}
