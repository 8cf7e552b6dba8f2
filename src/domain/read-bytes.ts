import { closeSync, openSync, readSync } from "node:fs";
import { getSystemErrorMessage } from "node:util";

/** The bytes of a file, device or pipe: at most one more than `maxBytes`. `refuse` makes the error if it cannot be read. */
export function readBytes(path: string, maxBytes: number, refuse: (problem: string) => Error): Buffer {
  try {
    return readStart(path, maxBytes + 1);
  } catch (error) {
    throw refuse(fileProblem(path, error));
  }
}

function readStart(path: string, maxBytes: number): Buffer {
  const buffer = Buffer.alloc(maxBytes);
  const file = openSync(path, "r");
  try {
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(file, buffer, length, buffer.length - length, null);
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

/** Why a file cannot be read or written. Omits the name of the system call and gives the path only once. */
export function fileProblem(path: string, error: unknown, action: "read" | "written" = "read"): string {
  const { errno, code, message } = error as NodeJS.ErrnoException;
  const reason = errno === undefined ? message : `${getSystemErrorMessage(errno)} (${code})`;
  return `${path} cannot be ${action}: ${reason}`;
}
