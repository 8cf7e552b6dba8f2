import { statSync } from "node:fs";
import type { Model } from "../domain/model.ts";
import type { Log } from "../telemetry/log.ts";

/** Write access of the group, or any access of other users. */
const EXPOSED = 0o027;

/** Warns of a file with a secret that other users can read or change. */
export function warnIfExposed(file: string, log: Log): void {
  const mode = statSync(file).mode & 0o777;
  if ((mode & EXPOSED) === 0) return;
  log.warn(
    { file, mode: mode.toString(8).padStart(4, "0") },
    "other users can access a file with a secret; set its mode to 0600 or 0640",
  );
}

/** Once for each file with keys of upstreams. */
export function warnOfExposedKeys(models: readonly Model[], log: Log): void {
  const files = models.flatMap(({ upstreams }) =>
    upstreams.map((upstream) => ("apiKeyFile" in upstream ? upstream.apiKeyFile : undefined)),
  );
  for (const file of new Set(files)) if (file !== undefined) warnIfExposed(file, log);
}
