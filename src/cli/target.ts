import { isIPv6 } from "node:net";
import { readAdminToken } from "../admin-token.ts";
import { type Config, readConfig } from "../config.ts";
import { ConfigError } from "../config-error.ts";
import { CommandFailure, usageFailure } from "./failure.ts";

/** The operator listener to talk to. */
export type Target = { readonly url: string; readonly token: string };

export function readTarget(env: NodeJS.ProcessEnv): Target {
  const config = readSettings(env, ["VX_ADMIN_HOST", "VX_ADMIN_PORT", "VX_ADMIN_TOKEN", "VX_DATA_DIR"]);
  if (config.adminPort === 0) throw usageFailure("wrong setting: VX_ADMIN_PORT: 0 is no port to connect to");
  return { url: urlOf(config.adminHost, config.adminPort), token: tokenOf(config) };
}

/** The settings a command needs, by the rules of the server: another one that is wrong does not stop it. */
export function readSettings(env: NodeJS.ProcessEnv, names: readonly string[]): Config {
  try {
    return readConfig(Object.fromEntries(names.map((name) => [name, env[name] ?? ""])));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw usageFailure(`wrong setting: ${error.message.replaceAll("\n", "; ")}`);
  }
}

function urlOf(host: string, port: number): string {
  // A server that listens on every address is reached on its own machine.
  if (host === "0.0.0.0") return `http://127.0.0.1:${port}`;
  if (isIPv6(host)) {
    const url = `http://[${host}]:${port}`;
    if (!URL.canParse(url)) throw wrongHost();
    return new URL(url).hostname === "[::]" ? `http://[::1]:${port}` : url;
  }
  if (!/^[\w.-]+$/.test(host) || !URL.canParse(`http://${host}`)) throw wrongHost();
  return `http://${host}:${port}`;
}

function wrongHost(): CommandFailure {
  return usageFailure("wrong setting: VX_ADMIN_HOST: must be a host name or an address");
}

function tokenOf({ adminToken, dataDir }: Config): string {
  if (adminToken !== undefined) return adminToken;
  const remedy = "set VX_ADMIN_TOKEN, or VX_DATA_DIR to the data folder of the server";
  let token: string;
  try {
    token = readAdminToken(dataDir);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT"
        ? `there is no operator token in ${dataDir}`
        : `the operator token cannot be read: ${message}`;
    throw new CommandFailure(`${why}; ${remedy}`);
  }
  // Anything else cannot stand in a header.
  if (!/^[!-~]+$/.test(token))
    throw new CommandFailure(`the file admin-token in ${dataDir} holds no token; ${remedy}`);
  return token;
}
