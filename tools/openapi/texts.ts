import type { CommentOf } from "./comments.ts";
import type { Operation } from "./operations.ts";

export const INTRODUCTION = `A paid, metered generation API. Every call under \`/v1\` carries an API key in the header
\`Authorization: Bearer <API_KEY>\`; \`GET /v1/me\` is the quickest check that it works.

Each key belongs to a plan, which sets its requests per minute. The account has a prepaid balance: a generation is checked
against it before it runs and charged after it ran, and each movement is one row of the ledger.

Amounts are integers in millionths of the currency unit ("micros"), beside the same as text. Every field of an answer is
there, zero or null where nothing is set. In a request, a field that is null is one that was left out, and unknown fields
and parameters are refused; only \`/v1/chat/completions\` ignores unknown fields, as at OpenAI. The same methods can be called over gRPC, gRPC-Web and Connect.

Checks are made in this order: address, key (401), scope (403), rate (429), body and fields (400), balance (402).`;

/** The first sentence of the comment. */
export function summaryOf({ usual }: Operation, commentOf: CommentOf): string {
  const comment = commentOf(usual);
  const end = comment.search(/[.:](\s|$)/);
  return end < 0 ? comment : comment.slice(0, end);
}

export function operationText({ usual, streamed, policy }: Operation, commentOf: CommentOf): string {
  const parts = [commentOf(usual)];
  if (streamed) parts.push(`With \`"${streamed.by}": true\`: ${commentOf(streamed.method)}`);
  const facts = [
    policy.scope ? `Needs the scope \`${policy.scope}\`.` : "Any valid key will do.",
    policy.rateLimited
      ? "Takes one slot of the key's requests per minute."
      : "Takes no slot of the key's requests per minute.",
    policy.metered ? "Is charged to the balance." : "Costs nothing.",
  ];
  return [...parts, facts.join(" ")].join("\n\n");
}
