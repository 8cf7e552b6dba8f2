import type { DescService } from "@bufbuild/protobuf";
import { surfaceOf } from "../../src/rules/policy.ts";
import type { CommentOf } from "./comments.ts";
import type { Operation } from "./operations.ts";

export const INTRODUCTION = `A paid, metered generation API. Every call under \`/v1\` needs an API key in the header
\`Authorization: Bearer <API_KEY>\`. To check a key, call \`GET /v1/me\`.

Each key belongs to a plan, which sets the number of requests per minute. Each account has a prepaid balance. The maximum
cost of a generation is held before the generation runs, and the actual cost is charged after it. Every change of the balance
is one ledger entry.

Amounts are integers in micros (millionths of the currency unit). Where a field contains the same amount as text, it is next
to it. A response contains every field; a field without a value is zero, empty or null. In a request, null is the same as an
absent field. Unknown fields and parameters are rejected, except by the endpoints in the formats of OpenAI and Anthropic, which
ignore unknown fields. All other methods are also available over gRPC, gRPC-Web and Connect.

The server checks a call in this order: path, key (401), scope (403), rate limit (429), body and fields (400), model (404), balance (402), limits (402, 429).`;

/** The titles of services that differ from their names. */
const TAG_TITLES: Readonly<Record<string, string>> = {
  ChatService: "Chat completions",
  EmbedService: "Embeddings",
  ModelService: "Models",
  MeService: "Account status",
  LimitService: "Limits",
  EventService: "Events",
  StatementService: "Statements",
  FailureService: "Failed calls",
  TopUpService: "Payments",
  // Scalar has a section "Webhooks" for those of the document.
  WebhookService: "Webhook settings",
  KeyService: "Keys",
};

/** The title of a service. Services in the format of another API name that API. */
export function tagTitle(service: DescService): string {
  const title = TAG_TITLES[service.name] ?? service.name.replace(/Service$/, "");
  switch (surfaceOf(service)) {
    case "native":
      return title;
    case "anthropic":
      return `${title} (Anthropic)`;
    default:
      return `${title} (OpenAI)`;
  }
}

/** The first paragraph of the comment. Another address of a method is named after its verb: "Delete key". */
export function summaryOf({ usual, binding, id }: Operation, commentOf: CommentOf): string {
  const summary = commentOf(usual).split("\n\n", 1)[0] ?? "";
  if (id === usual.name) return summary;
  const verb = binding.verb.charAt(0) + binding.verb.slice(1).toLowerCase();
  return summary.replace(/^\w+/, verb);
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
