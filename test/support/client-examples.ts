import { readFileSync } from "node:fs";

/** Returns the only example of docs/clients.md in this language that contains these words. */
export function clientExample(language: string, words: string): string {
  const blocks = [...readFileSync("docs/clients.md", "utf8").matchAll(/```(\w+)\n([\s\S]*?)```/g)];
  const found = blocks.filter(([, name, code]) => name === language && code?.includes(words));
  if (found.length !== 1) throw new Error(`${found.length} examples in ${language} with ${words}`);
  return found[0]?.[2] ?? "";
}

/** Returns the command of docs/clients.md that starts with this text, with its continuation lines. */
export function clientCommand(start: string): string {
  const lines = readFileSync("docs/clients.md", "utf8").split("\n");
  const first = lines.findIndex((line) => line.startsWith(`    ${start}`));
  if (first < 0) throw new Error(`no command ${start}`);
  const last = lines.findIndex((line, i) => i >= first && !line.endsWith("\\"));
  return lines.slice(first, last + 1).join("\n");
}
