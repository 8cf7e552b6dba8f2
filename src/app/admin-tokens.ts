import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolders } from "../database/embedded/server-user.ts";
import { DomainError } from "../domain/errors.ts";
import { fileProblem, readBytes } from "../domain/read-bytes.ts";
import { tokenMatcher } from "../server/credentials/operator-authentication.ts";
import type { Log } from "../telemetry/log.ts";
import { warnIfExposed } from "./exposed-file.ts";
import { type Config, TOKEN } from "./settings/config.ts";
import { ConfigError } from "./start-error.ts";

type Settings = Pick<Config, "dataDir" | "adminToken" | "adminTokenFile" | "metricsToken">;

/** Two, so that one can replace the other without a gap. */
const MAX_TOKENS = 2;
const MAX_FILE_BYTES = 8_192;

export class AdminTokens {
  readonly #settings: Settings;
  /** Changes that were sent with a token and have not ended. */
  readonly #changes = new Set<Promise<void>>();
  #matchers: readonly ((token: string) => boolean)[];

  private constructor(settings: Settings, tokens: readonly string[]) {
    this.#settings = settings;
    this.#matchers = tokens.map(tokenMatcher);
  }

  /** The setting, the lines of VX_ADMIN_TOKEN_FILE, or the file in the data folder, which the first start creates. */
  static load(settings: Settings, log: Log): AdminTokens {
    const { dataDir, adminToken, adminTokenFile } = settings;
    if (adminTokenFile !== undefined) return new AdminTokens(settings, readTokens(settings, log));
    return new AdminTokens(settings, [adminToken ?? loadOrCreate(dataDir)]);
  }

  matches(token: string): boolean {
    // Each is compared, so that the time does not depend on the token.
    return this.#matchers.map((isEqual) => isEqual(token)).includes(true);
  }

  /** Sends a change if the token is still valid. A reload that removes the token waits for the change. */
  async whileValid<Result>(token: string, send: () => Promise<Result>): Promise<Result> {
    if (!this.matches(token)) throw new DomainError("invalid_operator_token");
    const sending = send();
    const settled = sending.then(ignore, ignore);
    this.#changes.add(settled);
    void settled.then(() => this.#changes.delete(settled));
    return await sending;
  }

  /** Reads VX_ADMIN_TOKEN_FILE again. An invalid file changes nothing. Resolves when changes that removed tokens began have ended. */
  async reload(log: Log): Promise<void> {
    if (this.#settings.adminTokenFile === undefined) return;
    try {
      const tokens = readTokens(this.#settings, log);
      this.#matchers = tokens.map(tokenMatcher);
      await Promise.all(this.#changes);
      log.info({ tokens: tokens.length }, "reloaded operator tokens");
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      log.error({ problem: error.message }, "reloading operator tokens failed, the previous ones stay in use");
    }
  }
}

const ignore = () => undefined;

function readTokens({ adminTokenFile: path = "", metricsToken }: Settings, log: Log): readonly string[] {
  const tokens = readAdminTokenFile(path);
  if (metricsToken !== undefined && tokens.includes(metricsToken))
    throw new ConfigError(`VX_METRICS_TOKEN: must not be a token in ${path}`);
  warnIfExposed(path, log);
  return tokens;
}

/** The tokens of a file, one a line. Errors do not contain them. */
export function readAdminTokenFile(path: string): readonly string[] {
  const refuse = (problem: string) => new ConfigError(`VX_ADMIN_TOKEN_FILE: ${problem}`);
  const bytes = readBytes(path, MAX_FILE_BYTES, refuse);
  if (bytes.length > MAX_FILE_BYTES) throw refuse(`${path} is larger than ${MAX_FILE_BYTES} bytes`);
  const lines = bytes.toString("utf8").trimEnd().split(/\r?\n/);
  if (lines.length > MAX_TOKENS || lines[0] === "") throw refuse(`${path} must have one or two tokens, one a line`);
  for (const [i, line] of lines.entries()) {
    if (!TOKEN.test(line)) throw refuse(`${path}:${i + 1}: a token must have 16 to 512 visible ASCII characters`);
  }
  return lines;
}

function loadOrCreate(dataDir: string): string {
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
