import { getSystemErrorMessage } from "node:util";

/** Why a file cannot be read or written. Omits the name of the system call and gives the path only once. */
export function fileProblem(path: string, error: unknown, action: "read" | "written" = "read"): string {
  const { errno, code, message } = error as NodeJS.ErrnoException;
  const reason = errno === undefined ? message : `${getSystemErrorMessage(errno)} (${code})`;
  return `${path} cannot be ${action}: ${reason}`;
}
