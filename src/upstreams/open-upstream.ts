import type { SandboxSettings, UpstreamSettings } from "../domain/model.ts";
import { readUpstreamKey } from "../models/upstream-key.ts";
import { createDialect } from "./dialects.ts";
import type { Connections } from "./http/connection-pool.ts";
import { HttpUpstream } from "./http/http-upstream.ts";
import type { FirstTokens } from "./http/reply-buffer.ts";
import type { Upstream } from "./upstream.ts";

type OpenOptions = {
  readonly connections: Connections;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly loadFirstTokens: () => Promise<FirstTokens>;
  readonly openSandbox: (settings: SandboxSettings) => Upstream;
};

export function openUpstream(settings: UpstreamSettings, options: OpenOptions): Upstream {
  const { connections, loadFirstTokens } = options;
  if (settings.kind === "sandbox") return options.openSandbox(settings);
  const readKey = () => readUpstreamKey(settings, options.env);
  return new HttpUpstream(createDialect(settings), settings, readKey, connections, loadFirstTokens);
}
