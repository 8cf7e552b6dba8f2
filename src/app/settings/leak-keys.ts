import { createPublicKey, type KeyObject } from "node:crypto";
import { z } from "zod";
import { jsonIfValid } from "../../domain/json.ts";
import { readBytes } from "../../domain/read-bytes.ts";
import type { Log } from "../../telemetry/log.ts";
import { ConfigError } from "../start-error.ts";

const MAX_FILE_BYTES = 65_536;

/** As the secret scanning partner programme publishes them. */
const FILE = z.object({
  public_keys: z
    .array(z.object({ key_identifier: z.string().regex(/^[\w.:-]{1,128}$/), key: z.string() }))
    .min(1)
    .max(100),
});

/** The public keys of VX_LEAK_KEYS_FILE, by their identifiers. */
export class LeakKeys {
  readonly #path: string;
  #keys: ReadonlyMap<string, KeyObject>;

  private constructor(path: string) {
    this.#path = path;
    this.#keys = readKeys(path);
  }

  static load(path: string | undefined): LeakKeys | undefined {
    return path === undefined ? undefined : new LeakKeys(path);
  }

  get(identifier: string): KeyObject | undefined {
    return this.#keys.get(identifier);
  }

  /** Reads the file again. An invalid file changes nothing. */
  reload(log: Log): void {
    try {
      this.#keys = readKeys(this.#path);
      log.info({ keys: this.#keys.size }, "reloaded keys of leak reports");
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      log.error({ problem: error.message }, "reloading keys of leak reports failed, the previous ones stay in use");
    }
  }
}

function readKeys(path: string): ReadonlyMap<string, KeyObject> {
  const refuse = (problem: string) => new ConfigError(`VX_LEAK_KEYS_FILE: ${problem}`);
  const bytes = readBytes(path, MAX_FILE_BYTES, refuse);
  const parsed = FILE.safeParse(jsonIfValid(bytes));
  if (bytes.length > MAX_FILE_BYTES || !parsed.success) {
    throw refuse(
      `${path} must be a JSON object {"public_keys":[{"key_identifier":"…","key":"-----BEGIN PUBLIC KEY-----…"}]} ` +
        `with 1 to 100 keys, of at most ${MAX_FILE_BYTES} bytes`,
    );
  }
  return new Map(
    parsed.data.public_keys.map(({ key_identifier: identifier, key }) => {
      const publicKey = publicKeyOf(key);
      if (!publicKey) throw refuse(`${path}: the key "${identifier}" is not a public P-256 key in PEM`);
      return [identifier, publicKey];
    }),
  );
}

function publicKeyOf(pem: string): KeyObject | undefined {
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyDetails?.namedCurve === "prime256v1" ? key : undefined;
  } catch {
    return undefined;
  }
}
