import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileProblem } from "../domain/file-problem.ts";
import { makeFolders } from "../embedded-postgres/make-folders.ts";
import { ConfigError } from "./config-error.ts";

/** Returns the operator token: the setting, or the file in the data folder, created on the first start. */
export function loadOrCreateAdminToken(dataDir: string, setting: string | undefined): string {
  if (setting !== undefined) return setting;
  const path = adminTokenPath(dataDir);
  try {
    makeFolders(dataDir);
    writeFileSync(path, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
      throw new ConfigError(
        `VX_DATA_DIR: ${fileProblem(path, error, "written")}; set VX_DATA_DIR to a folder that this user can write to`,
      );
    }
  }
  const token = readToken(dataDir);
  if (token === "") throw new ConfigError(`VX_DATA_DIR: ${path} is empty; delete it to create a new token`);
  return token;
}

function readToken(dataDir: string): string {
  try {
    return readAdminToken(dataDir);
  } catch (error) {
    throw new ConfigError(`VX_DATA_DIR: ${fileProblem(adminTokenPath(dataDir), error)}`);
  }
}

export function readAdminToken(dataDir: string): string {
  return readFileSync(adminTokenPath(dataDir), "utf8").trim();
}

function adminTokenPath(dataDir: string): string {
  return join(dataDir, "admin-token");
}
