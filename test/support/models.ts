import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTemporaryFolder } from "./temporary-folder.ts";

/** A models.yaml with sandbox models of these ids. */
export function modelsYaml(ids: readonly string[]): string {
  const models = ids.map(
    (id) =>
      `  - {id: "${id}", context_window: 100, max_output_tokens: 50, input_micros_per_million_tokens: 1, output_micros_per_million_tokens: 2, upstream: {kind: sandbox}}\n`,
  );
  return `models:\n${models.join("")}`;
}

/** Writes the file into a new temporary folder. */
export function createModelsFile(text: string, parent?: string) {
  const folder = createTemporaryFolder("models", parent);
  const path = join(folder.path, "models.yaml");
  const write = (content: string) => writeFileSync(path, content);
  write(text);
  return { path, write, remove: () => folder.remove() };
}
