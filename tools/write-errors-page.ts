// Writes docs/errors.md from the table in src/domain/errors.ts and the responses in tools/responses-402.md.
import { readFileSync, writeFileSync } from "node:fs";
import { ERRORS, RETRIED_IF, type Reason } from "../src/domain/errors.ts";

const rows = Object.entries(ERRORS).map(
  ([reason, { status, code, type, message, shouldRetry }]) =>
    `| ${status} | \`${reason}\` | ${code} | \`${type}\` | ${retryOf(reason as Reason, shouldRetry)} | ${message} |`,
);
const responses = readFileSync(new URL("responses-402.md", import.meta.url), "utf8").trim();

function retryOf(reason: Reason, shouldRetry: boolean | undefined): string {
  const condition = RETRIED_IF[reason];
  if (condition !== undefined) return `\`true\` if ${condition}, otherwise \`false\``;
  return shouldRetry === undefined ? "" : `\`${shouldRetry}\``;
}

writeFileSync(
  "docs/errors.md",
  `# Errors

\`npm run generate\` writes this page from \`src/domain/errors.ts\`.

Every error has one reason.

**REST**: the response has the status of the reason and this body:

    {"error": {"code": reason, "type": …, "message": …, "param": field or null, "status": gRPC code,
               "details": [google.rpc details], "request_id": …}}

Below \`/v1/messages\` and \`/anthropic\`, and at a path without a route if the call has the header \`anthropic-version\`, the body is
\`{"type": "error", "error": {…}, "request_id": …}\` with the same members except for \`details\`, which is an object with the
reason as \`error_code\`.

**gRPC, gRPC-Web and Connect**: the error has the gRPC code of the reason and a \`google.rpc.ErrorInfo\` detail with the
domain \`vx\` and the reason in upper case. Some errors also have a \`BadRequest\`, \`RetryInfo\`, \`QuotaFailure\` or
\`PreconditionFailure\` detail. Three errors have the code that gRPC and Connect derive from the HTTP status: an unknown method
(404, \`UNIMPLEMENTED\`), another HTTP method (405, \`UNKNOWN\`) and an unknown content type (415, \`UNKNOWN\`).

The server checks a call in this order: path → key (401) → scope (403) → rate limit (429) → body and fields (413, 415, 400) →
model (404, 403) → what the model supports (400) → idempotency key (422, 409) → balance (402) → limits (402, 429). Only a call that
passes the rate limit counts against it.

An \`Idempotency-Key\` belongs to one request: the method, every field, including those that change no reply such as
\`metadata\`, and, on REST, \`stream\`. The same key with another request gets \`idempotency_key_reused\`. For example, the
same messages sent to \`/v1/generate\` and to \`/v1/chat/completions\`, unary and streamed, are four requests. The order of
JSON members does not count.

If the response of a call with an \`Idempotency-Key\` was interrupted, a retry gets the content that was delivered, followed by
\`generation_interrupted\` with the cause of the interruption. A retry is not charged again.

## A whole 402

The responses to a call that can cost $0.000025 with a balance of $0.000005 and \`VX_TOP_UP_URL\`. Every 402 has the amounts as numbers in
the error and as texts in its details; that of a limit of cost also names the limit. A test compares these responses with those of a
server. Headers that are not about the error, such as those of rate limits, are left out.

${responses}

## Failed calls of an account

\`GET /v1/failures\`, \`vx failures list\` and the section Failures of both pages list the metered calls that ended with an error and have
no ledger entry: calls of a known key that were refused (401 of a revoked or expired key, 403, 429, 400, 402, 404 and so on), that failed
at their upstreams, and whose caller disconnected before anything was charged (status 499, code \`canceled\`). A call that was charged in
part, such as a stream that was cut, is in the ledger with its reason.

A row has the time, key, method, model, status, code, message, latency and request id, and for operators the upstream. The message is the
one that the caller got; nothing of the prompt is stored. Rows are written about once a second beside the calls and kept for
\`VX_FAILURES_DAYS\` (7). Of an account and minute, at most 600 rows are stored over all servers, and one more says how many other calls
failed. When too many wait, a server counts calls in place of storing them (\`vx_omitted_failures_total\`); a server that crashes loses
those of the last second.

\`GET /v1/failures:count\`, \`vx failures count\` and the chart above the list of both pages count these rows by error and by hour, day or
month, of all calls or of a key or model. At most the newest 100,000 rows of the range are counted, those from
\`counted_from\` on. Calls that are not listed have the code \`""\`.

## Reasons

If the column \`x-should-retry\` has a value, responses have this header: some clients retry even a 401 for minutes. Without it,
the official OpenAI and Anthropic clients retry every 409, 429 and 5xx. A 402 is retried only with \`true\`. If the server knows
when a retry can succeed, the response also has \`Retry-After\`, and RPCs have a \`RetryInfo\` detail.

| status | reason | gRPC code | type | \`x-should-retry\` | default message |
|---|---|---|---|---|---|
${rows.join("\n")}
`,
);
