import { readFile } from "node:fs/promises";
import type { Model } from "../../../domain/model.ts";
import { exampleModels } from "../../../models/example-model.ts";
import type { Product } from "../product.ts";
import type { Render } from "../rendered.ts";
import { insertExamples } from "./insert-examples.ts";
import type { Schema } from "./schema.ts";

const FILE = new URL("../../../../gen/openapi.json", import.meta.url);

/** The committed document with the product's name, the address of this server and its models in the examples. */
export async function openApiPage(models: readonly Model[], product: Product): Promise<Render> {
  const committed = JSON.parse(await readFile(FILE, "utf8")) as Schema;
  const { info, servers, ...others } = insertExamples(committed, exampleModels(models));
  const contact =
    product.supportUrl === undefined ? {} : { contact: { name: "Support", url: product.supportUrl } };
  const named = {
    openapi: others.openapi,
    info: { ...(info as Schema), title: product.name, ...contact },
    ...others,
  };
  const [server] = servers as readonly Schema[];
  // Serialized once: only the servers differ between clients.
  const open = JSON.stringify(named, null, 2).slice(0, -"\n}".length);
  return (url) => `${open},\n  "servers": ${JSON.stringify([{ ...server, url }])}\n}\n`;
}
