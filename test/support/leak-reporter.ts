import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** A member of the secret scanning partner programme, with a key of its own. */
export type LeakReporter = {
  readonly identifier: string;
  /** As the file of VX_LEAK_KEYS_FILE has it. */
  readonly publicKey: { readonly key_identifier: string; readonly key: string; readonly is_current: boolean };
  readonly privateKey: KeyObject;
};

export function createLeakReporter(identifier: string, namedCurve = "prime256v1"): LeakReporter {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve });
  const key = publicKey.export({ type: "spki", format: "pem" }).toString();
  return { identifier, publicKey: { key_identifier: identifier, key, is_current: true }, privateKey };
}

export function leakKeysFile(...reporters: readonly LeakReporter[]): string {
  return JSON.stringify({ public_keys: reporters.map(({ publicKey }) => publicKey) });
}

export function signedHeaders({ identifier, privateKey }: LeakReporter, body: string) {
  return {
    "content-type": "application/json",
    "github-public-key-identifier": identifier,
    "github-public-key-signature": sign("sha256", Buffer.from(body), privateKey).toString("base64"),
  };
}

/** Sends the body with these headers, by default with those of a valid signature. */
export async function sendReport(
  url: string,
  reporter: LeakReporter,
  body: string,
  headers: Record<string, string> = signedHeaders(reporter, body),
) {
  const response = await fetch(`${url}/leaks`, { method: "POST", headers, body });
  return { status: response.status, body: await response.json() };
}
