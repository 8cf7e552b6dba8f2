// Writes the examples of Anthropic's clients in docs/clients.md from src/domain/anthropic-clients.ts.
import { readFileSync, writeFileSync } from "node:fs";
import { anthropicClients } from "../src/domain/anthropic-clients.ts";
import { BUILT_IN_MODELS } from "../src/models/built-in.ts";

const PATH = "docs/clients.md";
const EXAMPLE = /(<!-- example (.*?), by npm run generate -->\n)(?:\n```\w+\n[\s\S]*?\n```\n)?/g;
const FENCES = { typescript: "ts", python: "python", shell: "sh" } as const;
const clients = anthropicClients("http://127.0.0.1:8080", "vx-sandbox-small", BUILT_IN_MODELS);

const written = readFileSync(PATH, "utf8").replaceAll(EXAMPLE, (_, comment: string, id: string) => {
  const client = clients.find((one) => one.id === id);
  if (!client) throw new Error(`There is no example ${id}.`);
  return `${comment}\n\`\`\`${FENCES[client.language]}\n${client.code}\n\`\`\`\n`;
});
writeFileSync(PATH, written);
