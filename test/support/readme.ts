import { readFileSync } from "node:fs";

/** Returns the only example in this language that contains these words. */
export function readmeExample(language: string, words: string): string {
  const blocks = [...readFileSync("README.md", "utf8").matchAll(/```(\w+)\n([\s\S]*?)```/g)];
  const found = blocks.filter(([, name, code]) => name === language && code?.includes(words));
  if (found.length !== 1) throw new Error(`${found.length} examples in ${language} with ${words}`);
  return found[0]?.[2] ?? "";
}

/** Returns the command that starts with this text, with its continuation lines. */
export function readmeCommand(start: string): string {
  const lines = readFileSync("README.md", "utf8").split("\n");
  const first = lines.findIndex((line) => line.startsWith(`    ${start}`));
  if (first < 0) throw new Error(`no command ${start}`);
  const last = lines.findIndex((line, i) => i >= first && !line.endsWith("\\"));
  return lines.slice(first, last + 1).join("\n");
}
