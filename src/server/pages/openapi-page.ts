import { readFile } from "node:fs/promises";
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { ModelInfoSchema } from "../../../gen/vx/anthropic/v1/models_pb.js";
import { ModelSchema } from "../../../gen/vx/v1/model_pb.js";
import { modelInfoOf } from "../../anthropic/models-service.ts";
import { writerOf } from "../../codec/json/writer.ts";
import type { Model } from "../../domain/model.ts";
import { formatMicros } from "../../domain/money.ts";
import { costOf, maxCostOf, usageOf } from "../../domain/price.ts";
import { viewModel } from "../../generations/models.ts";
import { type ExampleModel, exampleModels } from "../../models/built-in.ts";
import type { Product } from "./site-header.ts";

type Json = { [name: string]: unknown };

const DOCUMENT = new URL("../../../gen/openapi.json", import.meta.url);
/** What depends on the models, by the place in the document: texts with placeholders such as {generation.id}. */
const PLACES = new URL("../../../gen/openapi-models.json", import.meta.url);

/** The document with the product's name, and the models of this server in the examples. */
export async function openApiPage(models: readonly Model[], product: Product): Promise<string> {
  const [committed, places] = await Promise.all([readJson(DOCUMENT), readJson(PLACES)]);
  const values = exampleValues(models);
  for (const [place, text] of Object.entries(places)) replace(committed, place, fill(text as string, values));
  const { supportUrl } = product;
  const contact = supportUrl === undefined ? {} : { contact: { name: "Support", url: supportUrl } };
  const info = { ...(committed.info as Json), title: product.name, ...contact };
  return `${JSON.stringify({ ...committed, info }, null, 2)}\n`;
}

async function readJson(file: URL): Promise<Json> {
  return JSON.parse(await readFile(file, "utf8")) as Json;
}

/** @param place a JSON pointer */
function replace(document: Json, place: string, value: unknown): void {
  const names = place
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = names.pop() as string;
  let parent = document;
  for (const name of names) parent = parent[name] as Json;
  parent[last] = value;
}

/** A text that is a placeholder becomes the value. Within JSON in a text, the quotes around it are replaced too. */
function fill(text: string, values: ExampleValues): unknown {
  const lookUp = (placeholder: string) => {
    const [role, name] = placeholder.slice(1, -1).split(".");
    return (values as unknown as Record<string, Json>)[role as string]?.[name as string];
  };
  if (/^\{\w+\.\w+\}$/.test(text)) return lookUp(text);
  return text
    .replace(/"\{\w+\.\w+\}"/g, (quoted) => JSON.stringify(lookUp(quoted.slice(1, -1))))
    .replace(/\{\w+\.\w+\}/g, (placeholder) => String(lookUp(placeholder)));
}

export const TOKENS = { inputTokens: 21, outputTokens: 7 };
/** The balance before it. */
export const CREDIT_MICROS = 10_000_000n;

/** What the examples show of the models and of their prices. */
export type ExampleValues = ReturnType<typeof exampleValues>;

export function exampleValues(models: readonly Model[]) {
  const { generation, tools, completion, embeddings } = exampleModels(models);
  const { model } = generation;
  const { base, perMessage } = model.promptOverheadTokens;
  const costMicros = costOf(model.prices, usageOf(TOKENS));
  const balanceMicros = CREDIT_MICROS - costMicros;
  // The bytes of both messages and their delimiters bound the tokens.
  const inputTokens = 46 + 2 * 4 + base + 2 * perMessage;
  const hold = maxCostOf(model.prices, { inputTokens, outputTokens: 200, images: 0 });
  const resource = written(ModelSchema, viewModel(model));
  return {
    generation: {
      ...named(generation),
      contextWindow: String(model.contextWindow),
      tooManyTokens: String(model.contextWindow + 812),
      costMicros: Number(costMicros),
      cost: formatMicros(costMicros),
      amountMicros: -Number(costMicros),
      amount: formatMicros(-costMicros),
      balanceMicros: Number(balanceMicros),
      balance: formatMicros(balanceMicros),
      holdMicros: Number(hold),
      hold: formatMicros(hold),
      resource,
      prices: resource.prices,
      info: written(ModelInfoSchema, modelInfoOf(model)),
    },
    tools: {
      ...named(tools),
      note: tools.missing === undefined ? "" : " (supported by no model of this server)",
    },
    completion: named(completion),
    embeddings: named(embeddings),
  };
}

function named({ model, missing }: ExampleModel) {
  return { id: model.id, missing: missing === undefined ? "" : `\n\n${missing}` };
}

function written<Desc extends DescMessage>(schema: Desc, value: MessageInitShape<Desc>): Json {
  return JSON.parse(writerOf(schema)(create(schema, value))) as Json;
}
