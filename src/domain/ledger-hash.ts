import { createHash } from "node:crypto";

/** A ledger row as the archives have it. */
export type LedgerLine = {
  readonly lane: number;
  readonly account_id: string;
  readonly seq: number;
  readonly id: string;
  readonly month: number;
  readonly kind: "generation" | "credit" | "adjustment";
  readonly amount_micros: number;
  readonly balance_after_micros: number;
  readonly reason: string;
  readonly request_id: string;
  readonly key_id: string;
  readonly model: string;
  readonly price_version: number;
  readonly input: number;
  readonly cached_input: number;
  readonly cache_write: number;
  readonly output: number;
  readonly reasoning: number;
  readonly images: number;
  readonly image_tokens: number;
  readonly user_id: string;
  readonly trace_id: string;
  /** In UTC, with microseconds: 2030-01-31T14:59:00.123456Z. */
  readonly created_at: string;
  readonly hash_version: number;
  /** In hexadecimal, as all hashes of an archive. */
  readonly hash: string;
};

/**
 * The hash that a row must have after a row with the hash `before`: what the SQL function ledger_hash computes. It is here too,
 * so that archives can be verified by a program that does not trust the database.
 */
export function ledgerHash(before: string, line: LedgerLine): string {
  const { account_id, id, reason, request_id, key_id, model, user_id, trace_id } = line;
  const fields = [
    line.hash_version,
    line.seq,
    line.month,
    line.kind,
    line.amount_micros,
    line.balance_after_micros,
    line.price_version,
    line.input,
    line.cached_input,
    line.cache_write,
    line.output,
    line.reasoning,
    line.images,
    line.image_tokens,
    microsOf(line.created_at),
    ...[account_id, id, reason, request_id, key_id, model, user_id, trace_id].flatMap((text) => [
      Buffer.byteLength(text),
      text,
    ]),
  ];
  return createHash("sha256").update(Buffer.from(before, "hex")).update(fields.join(":")).digest("hex");
}

/** Microseconds since 1970. */
function microsOf(time: string): bigint {
  const seconds = Date.parse(`${time.slice(0, 19)}Z`) / 1000;
  return BigInt(seconds) * 1_000_000n + BigInt(time.slice(20, 26));
}
