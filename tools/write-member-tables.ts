// Writes the tables of members in docs/openai.md and docs/anthropic.md from src/rules/compatible-members.ts.
import { readFileSync, writeFileSync } from "node:fs";
import { CHAT, COMPLETIONS, EMBEDDINGS, MESSAGES, RESPONSES } from "../src/rules/compatible-members.ts";
import type { MemberTable } from "../src/rules/request-members.ts";

/** By the name in the comment above each table. */
const TABLES: Readonly<Record<string, MemberTable>> = {
  "chat completions": CHAT,
  responses: RESPONSES,
  completions: COMPLETIONS,
  embeddings: EMBEDDINGS,
  messages: MESSAGES,
};

const TABLE = /(<!-- members of (.*?), by npm run generate -->\n)(?:\n|\|.*\n)*/g;

for (const path of ["docs/openai.md", "docs/anthropic.md"]) {
  const written = readFileSync(path, "utf8").replaceAll(
    TABLE,
    (_, comment: string, name: string) => `${comment}\n${tableOf(name)}\n\n`,
  );
  writeFileSync(path, written);
}

function tableOf(name: string): string {
  const table = TABLES[name];
  if (!table) throw new Error(`There is no table of the members of ${name}.`);
  const rows = table.rows.map(({ paths, text }) => `| ${paths.map((path) => `\`${path}\``).join(", ")} | ${text} |`);
  return ["| member | what the server does |", "|---|---|", ...rows].join("\n");
}
