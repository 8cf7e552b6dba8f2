import { readFile } from "node:fs/promises";
import { type AnthropicClient, anthropicClients } from "../../domain/anthropic-clients.ts";
import type { Model } from "../../domain/model.ts";
import { formatMicros, type Micros } from "../../domain/money.ts";
import type { PriceTier } from "../../domain/price.ts";
import { exampleModels } from "../../models/built-in.ts";
import { fill, type Html, html } from "./html.ts";
import { type Product, siteValues } from "./site-header.ts";

const FILE = new URL("home.html", import.meta.url);

/** The start page, with commands that can be pasted: they use the address and a model of this server. */
export async function homePage(models: readonly Model[], product: Product): Promise<(url: string) => string> {
  const page = await readFile(FILE, "utf8");
  const { model, missing } = exampleModels(models).generation;
  const values = {
    ...siteValues(product, "/"),
    model: model.id,
    note: missing === undefined ? "" : html`<p class="note">${missing.replaceAll("`", "")}</p>`,
    rows: modelRows(models),
  };
  return (url) => fill(page, { ...values, url, clients: figures(anthropicClients(url, model.id, models)) });
}

const LANGUAGES = { typescript: "Node.js", python: "Python", shell: "shell" } as const;

function figures(clients: readonly AnthropicClient[]): Html[] {
  return clients.map(
    ({ id, name, language, code }) => html`
          <figure>
            <figcaption>${name} <span>${LANGUAGES[language]}</span></figcaption>
            <pre><code id="${id}">${code}</code></pre>
          </figure>`,
  );
}

function modelRows(models: readonly Model[]): Html[] {
  return models.map((model) => {
    const { prices } = model;
    const createsVectors = model.capabilities.includes("embeddings");
    const input = [
      ...differing("cached", prices.cachedInput, prices.input),
      ...differing("cache write", prices.cacheWrite, prices.input),
      ...differing("cache write for an hour", prices.cacheWrite1h, prices.cacheWrite),
      ...prices.tiers.map((tier) => tierText(tier, tier.input)),
    ];
    const output = [
      ...differing("reasoning", prices.reasoning, prices.output),
      ...prices.tiers.map((tier) => tierText(tier, tier.output)),
    ];
    const units = [...differing("per image", prices.image, 0n), ...differing("per request", prices.request, 0n)];
    const names = model.aliases.length > 0 ? [`also ${model.aliases.join(", ")}`] : [];
    return html`
          <tr>
            <th scope="row"><code>${model.id}</code>${notes([...names, ...units])}</th>
            <td data-label="Context">${tokens(model.contextWindow)}</td>
            <td data-label="Max output">${createsVectors ? "–" : tokens(model.maxOutputTokens)}</td>
            <td data-label="Input">${formatMicros(prices.input)}${notes(input)}</td>
            <td data-label="Output">${createsVectors ? "–" : formatMicros(prices.output)}${createsVectors ? "" : notes(output)}</td>
            <td class="can" data-label="Can use">${capabilities(model)}</td>
          </tr>`;
  });
}

function tierText({ aboveInputTokens }: PriceTier, price: Micros): string {
  return `${formatMicros(price)} above ${tokens(aboveInputTokens)} input tokens`;
}

function differing(name: string, price: Micros, usual: Micros): string[] {
  return price === usual ? [] : [`${formatMicros(price)} ${name}`];
}

function notes(texts: readonly string[]): Html[] {
  return texts.map((text) => html`<small>${text}</small>`);
}

const CAPABILITY_NAMES = {
  tools: "tools",
  images: "images",
  json_schema: "JSON schema",
  reasoning: "reasoning",
  embeddings: "embeddings",
} as const satisfies Record<Model["capabilities"][number], string>;

function capabilities(model: Model): Html | Html[] {
  if (model.capabilities.length === 0) return html`text`;
  return model.capabilities.map((one) => html`<span class="tag">${CAPABILITY_NAMES[one]}</span> `);
}

function tokens(count: number): string {
  return count.toLocaleString("en-US");
}
