import { readFile } from "node:fs/promises";
import type { Model } from "../../domain/model.ts";
import { exampleModels } from "../../models/example-model.ts";
import type { Render } from "./rendered.ts";

const FILE = new URL("home.html", import.meta.url);

/** The start page, with commands that can be pasted: they use the address and a model of this server. */
export async function homePage(models: readonly Model[]): Promise<Render> {
  const html = await readFile(FILE, "utf8");
  const { id: model } = exampleModels(models).generation.model;
  return (url) => fill(html, { url, model });
}

/** Replaces each {{name}} by its value, escaped. */
function fill(html: string, values: Readonly<Record<string, string>>): string {
  return html.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the placeholder {{${name}}} of the page has no value`);
    return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  });
}
