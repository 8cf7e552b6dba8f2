import { readFile } from "node:fs/promises";
import type { Model } from "../../../domain/model.ts";
import { exampleModels } from "../../../models/example-model.ts";
import type { Render } from "../rendered.ts";
import { insertExamples } from "./insert-examples.ts";
import type { Schema } from "./schema.ts";

const FILE = new URL("../../../../gen/openapi.json", import.meta.url);

/** The committed document with the address of this server, and with one of its models in the examples. */
export async function openApiPage(models: readonly Model[]): Promise<Render> {
  const committed = JSON.parse(await readFile(FILE, "utf8")) as Schema;
  const { servers, ...others } = insertExamples(committed, exampleModels(models));
  const [server] = servers as readonly Schema[];
  // Serialized once: only the servers differ between clients.
  const open = JSON.stringify(others, null, 2).slice(0, -"\n}".length);
  return (url) => `${open},\n  "servers": ${JSON.stringify([{ ...server, url }])}\n}\n`;
}
