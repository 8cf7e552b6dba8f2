import type { SandboxSettings, UpstreamSettings } from "../domain/model.ts";
import { createDialect } from "./dialects.ts";
import type { Connections } from "./http/connection-pool.ts";
import { HttpUpstream } from "./http/http-upstream.ts";
import type { Upstream } from "./upstream.ts";

/** A message for the operator: the key of an upstream is missing or malformed. */
class UpstreamKeyError extends Error {}

type OpenOptions = {
  readonly connections: Connections;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly openSandbox: (settings: SandboxSettings) => Upstream;
};

export function openUpstream(settings: UpstreamSettings, options: OpenOptions): Upstream {
  if (settings.kind === "sandbox") return options.openSandbox(settings);
  const apiKey = readKey(settings.apiKeyEnv, options.env);
  return new HttpUpstream(createDialect(settings), settings, apiKey, options.connections);
}

function readKey(name: string | undefined, env: OpenOptions["env"]): string | undefined {
  if (name === undefined) return undefined;
  const key = env[name]?.trim() ?? "";
  if (key === "") throw new UpstreamKeyError(`${name} is not set, but an upstream needs it as its key`);
  if (!/^[!-~]+$/.test(key)) throw new UpstreamKeyError(`${name} contains characters that a key cannot have`);
  return key;
}
