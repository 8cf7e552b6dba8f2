import { closeSync, openSync, readSync } from "node:fs";
import { fileProblem } from "../domain/file-problem.ts";
import { ModelsError } from "./models-error.ts";

/** The text of a file, with a size limit that also holds for a path to a device or a pipe. */
export function readText(path: string, maxBytes: number): string {
  const buffer = Buffer.alloc(maxBytes + 1);
  let length = 0;
  try {
    const file = openSync(path, "r");
    try {
      for (let read = -1; read !== 0 && length < buffer.length; length += read) {
        read = readSync(file, buffer, length, buffer.length - length, null);
      }
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new ModelsError(`VX_MODELS: ${fileProblem(path, error)}`);
  }
  if (length > maxBytes) throw new ModelsError(`VX_MODELS: ${path} is larger than ${maxBytes} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(buffer.subarray(0, length));
  } catch {
    throw new ModelsError(`VX_MODELS: ${path} is not UTF-8 text`);
  }
}
