import type { Model } from "../domain/model.ts";
import { readBytes } from "../domain/read-bytes.ts";
import { BUILT_IN_MODELS } from "./built-in.ts";
import { ModelsError } from "./problems.ts";

const MAX_FILE_BYTES = 131_072;

/**
 * All models of the file, or the built-in models without a file. Throws if the file has any mistake. The YAML
 * parser is loaded only for a file, because it takes 20 MiB.
 */
export async function readModels(
  path: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Model[]> {
  if (path === undefined) return BUILT_IN_MODELS;
  const text = readText(path, MAX_FILE_BYTES);
  const { parseModels } = await import("./models-file.ts");
  return parseModels(text, path, env);
}

function readText(path: string, maxBytes: number): string {
  const bytes = readBytes(path, maxBytes, (problem) => new ModelsError(`VX_MODELS: ${problem}`));
  if (bytes.length > maxBytes) throw new ModelsError(`VX_MODELS: ${path} is larger than ${maxBytes} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ModelsError(`VX_MODELS: ${path} is not UTF-8 text`);
  }
}
