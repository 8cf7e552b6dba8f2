import type { RemoteSettings } from "../domain/model.ts";
import { readBytes } from "../domain/read-bytes.ts";

/** A message for the operator: the key of an upstream is missing or malformed. Does not contain the key. */
export class UpstreamKeyError extends Error {}

const MAX_KEY_BYTES = 8_192;

/** The key of an upstream: the value of its variable, or the content of its file. Undefined if it needs none. */
export function readUpstreamKey(
  { apiKeyEnv, apiKeyFile }: Pick<RemoteSettings, "apiKeyEnv" | "apiKeyFile">,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (apiKeyFile !== undefined) return checked(readKeyFile(apiKeyFile), `the file ${apiKeyFile}`, "is empty");
  if (apiKeyEnv === undefined) return undefined;
  return checked(env[apiKeyEnv] ?? "", `the environment variable ${apiKeyEnv}`, "is not set");
}

function readKeyFile(path: string): string {
  const bytes = readBytes(path, MAX_KEY_BYTES, (problem) => new UpstreamKeyError(problem));
  if (bytes.length > MAX_KEY_BYTES) throw new UpstreamKeyError(`the file ${path} is larger than ${MAX_KEY_BYTES} bytes`);
  return bytes.toString("utf8");
}

function checked(text: string, source: string, whenEmpty: string): string {
  const key = text.trim();
  if (key === "") throw new UpstreamKeyError(`${source} ${whenEmpty}`);
  if (!/^[!-~]+$/.test(key)) throw new UpstreamKeyError(`${source} contains characters that a key cannot have`);
  return key;
}
