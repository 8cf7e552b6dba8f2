import type { Model } from "../domain/model.ts";
import { nearestOf } from "../domain/nearest.ts";
import type { Log } from "../telemetry/log.ts";
import { SETTINGS } from "./config.ts";

/** Variables of the commands and of the documented clients. The server does not read them. */
const CLIENT_VARIABLES = ["VX_URL", "VX_KEY"];

/**
 * Warns instead of failing, because Kubernetes sets such variables for a Service called vx. Values are never
 * logged.
 */
export function warnOfUnknownSettings(env: NodeJS.ProcessEnv, models: readonly Model[], log: Log): void {
  const ofUpstreams = models.flatMap(({ upstreams }) =>
    upstreams.map((upstream) => ("apiKeyEnv" in upstream ? upstream.apiKeyEnv : undefined)),
  );
  const known = new Set<string | undefined>([...SETTINGS, ...CLIENT_VARIABLES, ...ofUpstreams]);
  for (const name of Object.keys(env)) {
    if (!name.startsWith("VX_") || known.has(name)) continue;
    const nearest = nearestSetting(name);
    log.warn({ variable: name, nearest }, `unknown setting ${name} is ignored; did you mean ${nearest}?`);
  }
}

/** Compares without the common prefix VX_. */
export function nearestSetting(name: string): string {
  const nearest = nearestOf(withoutPrefix(name), SETTINGS.map(withoutPrefix));
  return SETTINGS.find((setting) => withoutPrefix(setting) === nearest) as string;
}

function withoutPrefix(name: string): string {
  return name.replace(/^VX_/, "");
}
