import type { Model } from "../domain/model.ts";
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

export function nearestSetting(name: string): string {
  const wanted = withoutPrefix(name);
  const distances = SETTINGS.map((setting) => editDistance(wanted, withoutPrefix(setting)));
  return SETTINGS[distances.indexOf(Math.min(...distances))] as string;
}

function withoutPrefix(name: string): string {
  return name.replace(/^VX_/, "");
}

/** Levenshtein distance: the number of characters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
