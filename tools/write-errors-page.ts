// Writes docs/errors.md from the table of errors.
import { writeFileSync } from "node:fs";
import { ERRORS } from "../src/domain/errors.ts";

const rows = Object.entries(ERRORS).map(
  ([reason, { status, code, type, message, shouldRetry }]) =>
    `| ${status} | \`${reason}\` | ${code} | \`${type}\` | ${shouldRetry ?? ""} | ${message} |`,
);
writeFileSync(
  "docs/errors.md",
  `# Errors

Made from \`src/domain/errors.ts\` by \`npm run generate\`.

Every error has one reason. Over gRPC, gRPC-Web and Connect the code says what kind of error it is, and a
\`google.rpc.ErrorInfo\` detail (domain \`vx\`) carries the reason in upper case. \`BadRequest\`, \`RetryInfo\`, \`QuotaFailure\`
and \`PreconditionFailure\` are added where they say more. For a method that does not exist (404), another verb (405) and
an unknown content type (415), their code is the one that gRPC and Connect derive from the HTTP status: \`UNIMPLEMENTED\`,
\`UNKNOWN\`, \`UNKNOWN\`. Over plain HTTP the body is

    {"error": {"code": reason, "type": …, "message": …, "param": field or null, "status": gRPC code,
               "details": [google.rpc details], "request_id": …}}

The checks are made in this order: address → key (401) → scope (403) → rate (429) → body and fields (400) → balance (402).
Only admitted calls take a slot of the minute.

An \`Idempotency-Key\` is for one payload, and the method is part of it: whole and with \`"stream": true\`, to
\`/v1/generate\` and to \`/v1/chat/completions\` the same messages are four payloads. With a key that another one had, the
answer is \`idempotency_key_reused\`.

A call whose response was cut keeps what it delivered under its idempotency key: a repetition gets that again, then
\`generation_interrupted\`, whose text says why the first response was cut. It is not charged again.

Where the column \`x-should-retry\` has a value, REST sends it as a header. The official OpenAI and Anthropic clients
otherwise repeat a call after every 409, 429 and 5xx.

| status | reason | gRPC code | type | \`x-should-retry\` | text, unless the call has a more exact one |
|---|---|---|---|---|---|
${rows.join("\n")}
`,
);
