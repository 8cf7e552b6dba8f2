import type { UpstreamSettings } from "../domain/model.ts";
import { anthropicDialect } from "./anthropic.ts";
import type { Connections } from "./http/connection-pool.ts";
import { HttpUpstream } from "./http/http-upstream.ts";
import { openaiDialect } from "./openai.ts";
import type { Upstream } from "./upstream.ts";

/** A message for the operator: the key of an upstream is missing or malformed. */
class UpstreamKeyError extends Error {}

type OpenOptions = {
  readonly connections: Connections;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly openSandbox: (settings: Extract<UpstreamSettings, { readonly kind: "sandbox" }>) => Upstream;
};

export function openUpstream(settings: UpstreamSettings, options: OpenOptions): Upstream {
  if (settings.kind === "sandbox") return options.openSandbox(settings);
  const dialect = settings.kind === "openai" ? openaiDialect(settings.baseUrl) : anthropicDialect;
  const apiKey = readKey(settings.apiKeyEnv, options.env);
  return new HttpUpstream(dialect, settings, apiKey, options.connections);
}

function readKey(name: string | undefined, env: OpenOptions["env"]): string | undefined {
  if (name === undefined) return undefined;
  const key = env[name]?.trim() ?? "";
  if (key === "") throw new UpstreamKeyError(`${name} is not set, but an upstream takes its key from it`);
  if (!/^[!-~]+$/.test(key)) throw new UpstreamKeyError(`${name} holds characters that no key has`);
  return key;
}
