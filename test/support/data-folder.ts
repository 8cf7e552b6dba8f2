import { execFileSync } from "node:child_process";
import { inject } from "vitest";
import { createTemporaryFolder } from "./temporary-folder.ts";

/** Copies a data folder whose database is stopped. The files keep their owners. */
export function copyDataFolder(from: string, to: string): void {
  execFileSync("cp", ["-a", `${from}/.`, to]);
}

/** Copies a new database into the folder, for tests whose subject is not its creation, which takes a second. */
export function putDatabase(dataDir: string): void {
  copyDataFolder(inject("dataTemplate"), dataDir);
}

/** A data folder with a new database. */
export function createDataFolder(name: string): ReturnType<typeof createTemporaryFolder> {
  const folder = createTemporaryFolder(name);
  putDatabase(folder.path);
  return folder;
}
