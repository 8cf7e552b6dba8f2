import type { RemoteKind, RemoteSettings, SandboxSettings, UpstreamSettings } from "../domain/model.ts";
import { anthropicDialect } from "./anthropic/anthropic-dialect.ts";
import type { Dialect } from "./dialect.ts";
import type { Connections } from "./http/connection-pool.ts";
import { HttpUpstream } from "./http/http-upstream.ts";
import { createOpenaiDialect } from "./openai/openai-dialect.ts";
import type { Upstream } from "./upstream.ts";

/** A message for the operator: the key of an upstream is missing or malformed. */
class UpstreamKeyError extends Error {}

type OpenOptions = {
  readonly connections: Connections;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly openSandbox: (settings: SandboxSettings) => Upstream;
};

/** One dialect, in a file of its own, for each kind of model server. */
const DIALECTS: Readonly<Record<RemoteKind, (settings: RemoteSettings) => Dialect>> = {
  openai: createOpenaiDialect,
  anthropic: () => anthropicDialect,
};

export function openUpstream(settings: UpstreamSettings, options: OpenOptions): Upstream {
  if (settings.kind === "sandbox") return options.openSandbox(settings);
  const dialect = DIALECTS[settings.kind](settings);
  const apiKey = readKey(settings.apiKeyEnv, options.env);
  return new HttpUpstream(dialect, settings, apiKey, options.connections);
}

function readKey(name: string | undefined, env: OpenOptions["env"]): string | undefined {
  if (name === undefined) return undefined;
  const key = env[name]?.trim() ?? "";
  if (key === "") throw new UpstreamKeyError(`${name} is not set, but an upstream needs it as its key`);
  if (!/^[!-~]+$/.test(key)) throw new UpstreamKeyError(`${name} contains characters that a key cannot have`);
  return key;
}
