import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { fileProblem } from "../../domain/read-bytes.ts";
import type { Listener } from "../../server/http/listener.ts";
import type { Log } from "../../telemetry/log.ts";
import { ConfigError } from "../start-error.ts";

export type TlsPair = { readonly cert: Buffer; readonly key: Buffer };

/** A certificate and its key in two files, and the settings that name them. */
export class TlsFiles {
  readonly #certSetting: string;
  readonly #certPath: string;
  readonly #keySetting: string;
  readonly #keyPath: string;

  private constructor(certSetting: string, certPath: string, keySetting: string, keyPath: string) {
    this.#certSetting = certSetting;
    this.#certPath = resolve(certPath);
    this.#keySetting = keySetting;
    this.#keyPath = resolve(keyPath);
  }

  /** Returns undefined if neither is set. Throws ConfigError if the files cannot be used. */
  static of(
    certSetting: string,
    certPath: string | undefined,
    keySetting: string,
    keyPath: string | undefined,
  ): TlsFiles | undefined {
    if (certPath === undefined && keyPath === undefined) return undefined;
    if (certPath === undefined || keyPath === undefined)
      throw new ConfigError(
        `${certPath === undefined ? certSetting : keySetting}: is missing; set both ${certSetting} and ${keySetting}, or neither`,
      );
    const files = new TlsFiles(certSetting, certPath, keySetting, keyPath);
    files.read();
    return files;
  }

  get certPath(): string {
    return this.#certPath;
  }

  /** Reads the files again. Throws ConfigError if the pair cannot be used. */
  read(): TlsPair {
    const cert = readFile(this.#certSetting, this.#certPath);
    const key = readFile(this.#keySetting, this.#keyPath);
    check(this.#certSetting, "must contain a certificate in PEM format", { cert });
    check(this.#keySetting, `must contain the unencrypted private key of ${this.#certSetting} in PEM format`, {
      cert,
      key,
    });
    return { cert, key };
  }
}

function check(name: string, problem: string, options: SecureContextOptions): void {
  try {
    createSecureContext(options);
  } catch (error) {
    throw new ConfigError(`${name}: ${problem} (${(error as Error).message})`);
  }
}

function readFile(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ConfigError(`${name}: ${fileProblem(path, error)}`);
  }
}

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
