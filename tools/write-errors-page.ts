// Writes docs/errors.md from the table in src/domain/errors.ts.
import { writeFileSync } from "node:fs";
import { ERRORS } from "../src/domain/errors.ts";

const rows = Object.entries(ERRORS).map(
  ([reason, { status, code, type, message, shouldRetry }]) =>
    `| ${status} | \`${reason}\` | ${code} | \`${type}\` | ${shouldRetry ?? ""} | ${message} |`,
);
writeFileSync(
  "docs/errors.md",
  `# Errors

\`npm run generate\` writes this page from \`src/domain/errors.ts\`.

Every error has one reason.

**REST**: the response has the status of the reason and this body:

    {"error": {"code": reason, "type": …, "message": …, "param": field or null, "status": gRPC code,
               "details": [google.rpc details], "request_id": …}}

Below \`/v1/messages\`, the body is \`{"type": "error", "error": {…}, "request_id": …}\` with the same members except for
\`details\`, which is an object with the reason as \`error_code\`.

**gRPC, gRPC-Web and Connect**: the error has the gRPC code of the reason and a \`google.rpc.ErrorInfo\` detail with the
domain \`vx\` and the reason in upper case. Some errors also have a \`BadRequest\`, \`RetryInfo\`, \`QuotaFailure\` or
\`PreconditionFailure\` detail. Three errors have the code that gRPC and Connect derive from the HTTP status: an unknown method
(404, \`UNIMPLEMENTED\`), another HTTP method (405, \`UNKNOWN\`) and an unknown content type (415, \`UNKNOWN\`).

The server checks a call in this order: path → key (401) → scope (403) → rate limit (429) → body and fields (400) → balance
(402). Only a call that passes the rate limit counts against it.

An \`Idempotency-Key\` belongs to one request: the method, every field, including those that change no reply such as
\`metadata\`, and, on REST, \`stream\`. The same key with another request gets \`idempotency_key_reused\`. For example, the
same messages sent to \`/v1/generate\` and to \`/v1/chat/completions\`, unary and streamed, are four requests. The order of
JSON members does not count.

If the response of a call with an \`Idempotency-Key\` was interrupted, a retry gets the content that was delivered, followed by
\`generation_interrupted\` with the cause of the interruption. A retry is not charged again.

If the column \`x-should-retry\` has a value, REST responses have this header. Without it, the official OpenAI and Anthropic
clients retry every 409, 429 and 5xx.

| status | reason | gRPC code | type | \`x-should-retry\` | default message |
|---|---|---|---|---|---|
${rows.join("\n")}
`,
);
