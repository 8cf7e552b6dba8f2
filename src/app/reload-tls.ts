import { X509Certificate } from "node:crypto";
import type { Listener } from "../server/listener.ts";
import type { Log } from "../telemetry/log.ts";
import { ConfigError } from "./config-error.ts";
import type { TlsFiles } from "./tls-files.ts";

/** Reloads the certificate files for new connections. An invalid pair changes nothing. */
export function reloadTls(listener: Listener, files: TlsFiles | undefined, log: Log): void {
  if (files === undefined) return;
  try {
    const pair = files.read();
    listener.replaceTls(pair);
    const { validTo } = new X509Certificate(pair.cert);
    log.info({ file: files.certPath, valid_to: validTo }, "reloaded TLS certificate");
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error({ problem: error.message }, "reloading TLS certificate failed, the previous one stays in use");
  }
}
