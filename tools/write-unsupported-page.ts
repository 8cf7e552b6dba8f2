// Writes docs/unsupported.md from the table in src/server/rest/unsupported-apis.ts.
import { writeFileSync } from "node:fs";
import { UNSUPPORTED_APIS } from "../src/server/rest/unsupported-apis.ts";

const rows = UNSUPPORTED_APIS.map(({ path, name, instead }) => `| \`${path}\` | ${name} | ${instead ?? ""} |`);
writeFileSync(
  "docs/unsupported.md",
  `# Unsupported APIs

\`npm run generate\` writes this page from \`src/server/rest/unsupported-apis.ts\`.

OpenAI and Anthropic have further APIs that this server does not have. A call to one of these paths, or to a path below it, gets a
400 with the code \`invalid_argument\`. Its message names the API and says what to use instead; the official SDKs show it. Nothing
runs and nothing is charged. Like every other path, these require a key. A path that this server has under another HTTP method,
such as \`/v1/chat/completions\`, gets a 405 with the same message.

[openai.md](openai.md) and [anthropic.md](anthropic.md) list the fields of requests that are not supported.

| path | API | instead |
|---|---|---|
${rows.join("\n")}
`,
);
