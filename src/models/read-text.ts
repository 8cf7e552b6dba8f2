import { fileProblem } from "../domain/file-problem.ts";
import { readBytes } from "../domain/read-bytes.ts";
import { ModelsError } from "./models-error.ts";

/** The text of a file of limited size. */
export function readText(path: string, maxBytes: number): string {
  let bytes: Buffer;
  try {
    bytes = readBytes(path, maxBytes);
  } catch (error) {
    throw new ModelsError(`VX_MODELS: ${fileProblem(path, error)}`);
  }
  if (bytes.length > maxBytes) throw new ModelsError(`VX_MODELS: ${path} is larger than ${maxBytes} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ModelsError(`VX_MODELS: ${path} is not UTF-8 text`);
  }
}
