import type { CommentOf } from "./comments.ts";
import type { Operation } from "./operations.ts";

export const INTRODUCTION = `vx is a paid, metered generation API. Every call under \`/v1\` needs an API key in the header
\`Authorization: Bearer <API_KEY>\`. To check a key, call \`GET /v1/me\`.

Each key belongs to a plan, which sets the number of requests per minute. Each account has a prepaid balance. The maximum
cost of a generation is held before the generation runs, and the actual cost is charged after it. Every change of the balance
is one ledger entry.

Amounts are integers in micros (millionths of the currency unit). Where a field contains the same amount as text, it is next
to it. A response contains every field; a field without a value is zero, empty or null. In a request, null is the same as an
absent field. Unknown fields and parameters are rejected, except by the endpoints in the formats of OpenAI and Anthropic, which
ignore unknown fields. The same methods are available over gRPC, gRPC-Web and Connect.

The server checks a call in this order: path, key (401), scope (403), rate limit (429), body and fields (400), balance (402).`;

/** The first paragraph of the comment. */
export function summaryOf({ usual }: Operation, commentOf: CommentOf): string {
  return commentOf(usual).split("\n\n", 1)[0] ?? "";
}

export function operationText({ usual, streamed, policy }: Operation, commentOf: CommentOf): string {
  const parts = [descriptionOf(commentOf(usual))];
  if (streamed) parts.push(`With \`"${streamed.by}": true\`: ${descriptionOf(commentOf(streamed.method))}`);
  const facts = [
    policy.scope ? `Requires the scope \`${policy.scope}\`.` : "Accepts any valid key.",
    policy.rateLimited ? "Counts against the rate limit." : "Does not count against the rate limit.",
    policy.metered ? "Is charged to the balance." : "Is free of charge.",
  ];
  return [...parts, facts.join(" ")].join("\n\n");
}

/** The comment without its first paragraph. */
function descriptionOf(comment: string): string {
  return comment.split("\n\n").slice(1).join("\n\n");
}
