import { ERRORS, type Reason } from "../../src/domain/errors.ts";
import { isRestOnly } from "../../src/rules/policy.ts";
import type { Operation } from "./operations.ts";
import type { Schema } from "./schema.ts";

/** The response headers, under the names that operations refer to. */
export const HEADERS = {
  "x-request-id": header("The id of the call: the `x-request-id` of the request if it is valid, otherwise a new id.", {
    type: "string",
  }),
  "WWW-Authenticate": header("Always `Bearer`.", { type: "string", const: "Bearer" }),
  "Retry-After": header("The number of seconds to wait before a retry.", {
    type: "integer",
    minimum: 1,
    maximum: 3600,
  }),
  "x-should-retry": header("Whether a retry can succeed. The official OpenAI and Anthropic clients use this header.", {
    type: "string",
    enum: ["true", "false"],
  }),
  "RateLimit-Policy": header("The rate limit of the key: `q` requests in `w` seconds.", {
    type: "string",
    examples: ['"rpm";q=60;w=60'],
  }),
  RateLimit: header("The remaining requests `r`, and the seconds `t` until the next minute starts.", {
    type: "string",
    examples: ['"rpm";r=12;t=34'],
  }),
  "x-ratelimit-limit-requests": header("The rate limit in requests per minute.", { type: "integer" }),
  "x-ratelimit-remaining-requests": header("The remaining requests in this minute.", { type: "integer" }),
  "x-ratelimit-reset-requests": header("The time until the next minute starts.", {
    type: "string",
    examples: ["34s"],
  }),
  "x-vx-max-tokens": header(
    "The maximum number of output tokens, if it is lower than the call asked for or than the default of the model.",
    { type: "integer", minimum: 1 },
  ),
  "x-vx-ignored": header(
    "The names and paths of members of the request that are ignored, separated by commas. Absent if there are none.",
    { type: "string", maxLength: 1_000, examples: ["models, tools[2]"] },
  ),
} as const;

type HeaderName = keyof typeof HEADERS;

const WINDOW: readonly HeaderName[] = [
  "RateLimit-Policy",
  "RateLimit",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
];

/** Statuses of calls refused before the rate limit was checked: they have no rate limit headers. */
const STATUSES_WITHOUT_RATE_LIMIT = new Set([401, 403, 500, 503]);

export function answerHeaders(
  { policy, service, bodyFields }: Operation,
  status: number,
  reasons: readonly Reason[] = [],
): Schema {
  const names: HeaderName[] = ["x-request-id"];
  if (status === 401) names.push("WWW-Authenticate");
  if (status === 429) names.push("Retry-After");
  if (reasons.some((reason) => ERRORS[reason].shouldRetry !== undefined)) names.push("x-should-retry");
  if (policy.rateLimited && !STATUSES_WITHOUT_RATE_LIMIT.has(status)) names.push(...WINDOW);
  if (policy.metered && status === 200) names.push("x-vx-max-tokens");
  if (isRestOnly(service) && bodyFields.length > 0 && status === 200) names.push("x-vx-ignored");
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function header(description: string, schema: Schema): Schema {
  return { description, schema };
}
