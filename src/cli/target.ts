import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { readAdminToken, readAdminTokenFile } from "../app/admin-tokens.ts";
import { readCells } from "../app/settings/cells.ts";
import { type Config, readConfig } from "../app/settings/config.ts";
import { ConfigError } from "../app/start-error.ts";
import type { CellToMigrate } from "../database/cells/migrate-cell.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { shell } from "./shell.ts";

/** The operator listener to connect to. */
export type Target = {
  readonly url: string;
  readonly token: string;
  /** The expected certificate of the listener, in PEM; undefined to use the system's trusted certificates. */
  readonly cert: Buffer | undefined;
};

export function readTarget(): Target {
  const config = readSettings(["VX_ADMIN_HOST", "VX_ADMIN_PORT", "VX_ADMIN_TOKEN", "VX_ADMIN_TOKEN_FILE", "VX_DATA_DIR"]);
  const cert = readCertificate(shell.env.VX_ADMIN_TLS_CERT);
  const url = givenUrl(shell.env.VX_ADMIN_URL) ?? localUrl(cert ? "https" : "http", config);
  return { url, token: tokenOf(config), cert };
}

function givenUrl(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw usageFailure(
      "invalid setting: --url, VX_ADMIN_URL: must be a URL with host and port only, such as https://ops.example:8081",
    );
  return url.origin;
}

/** Reads only the certificate: a command may not be permitted to read the server's private key. */
function readCertificate(path: string | undefined): Buffer | undefined {
  if (path === undefined || path === "") return undefined;
  try {
    const cert = readFileSync(path);
    new X509Certificate(cert);
    return cert;
  } catch (error) {
    throw usageFailure(
      `invalid setting: VX_ADMIN_TLS_CERT: must contain a certificate in PEM format (${(error as Error).message})`,
    );
  }
}

/** Reads only the settings a command needs, so that other invalid settings do not stop it. */
export function readSettings(names: readonly string[]): Config {
  return orUsageFailure(() => readConfig(Object.fromEntries(names.map((name) => [name, shell.env[name] ?? ""]))));
}

/** An error of the settings is one of the usage. */
export function orUsageFailure<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    return invalid(error);
  }
}

function invalid(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  throw usageFailure(`invalid setting: ${error.message.replaceAll("\n", "; ")}`);
}

function localUrl(scheme: string, { adminHost: host, adminPort: port }: Config): string {
  if (port === 0) throw usageFailure("invalid setting: VX_ADMIN_PORT: must not be 0");
  // A server that listens on every address is reached through the loopback address.
  if (host === "0.0.0.0") return `${scheme}://127.0.0.1:${port}`;
  if (isIPv6(host)) {
    const url = `${scheme}://[${host}]:${port}`;
    if (!URL.canParse(url)) throw wrongHost();
    return new URL(url).hostname === "[::]" ? `${scheme}://[::1]:${port}` : url;
  }
  if (!/^[\w.-]+$/.test(host) || !URL.canParse(`${scheme}://${host}`)) throw wrongHost();
  return `${scheme}://${host}:${port}`;
}

function wrongHost(): CommandFailure {
  return usageFailure("invalid setting: VX_ADMIN_HOST: must be a host name or an address");
}

function tokenOf({ adminToken, adminTokenFile, dataDir }: Config): string {
  if (adminToken !== undefined) return adminToken;
  if (adminTokenFile !== undefined) return orUsageFailure(() => readAdminTokenFile(adminTokenFile))[0] ?? "";
  const remedy = "set VX_ADMIN_TOKEN, or VX_DATA_DIR to the data folder of the server";
  let token: string;
  try {
    token = readAdminToken(dataDir);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? `${dataDir} has no file admin-token` : `the operator token cannot be read: ${message}`;
    throw new CommandFailure(`${why}; ${remedy}`);
  }
  // A header cannot contain other characters.
  if (!/^[!-~]+$/.test(token)) throw new CommandFailure(`the file admin-token in ${dataDir} has no valid token; ${remedy}`);
  return token;
}

/** The cells of VX_CELLS. */
export async function readCellSettings(): Promise<readonly CellToMigrate[]> {
  const { cellsFile } = readSettings(["VX_CELLS"]);
  if (cellsFile === undefined) throw usageFailure("VX_CELLS is not set; set it to the path of cells.yaml");
  return (await readCells(cellsFile).catch(invalid)) ?? [];
}
