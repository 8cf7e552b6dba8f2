import { statSync } from "node:fs";
import type { Model } from "../domain/model.ts";
import type { Log } from "../telemetry/log.ts";

/** Write access of the group, or any access of other users. */
const EXPOSED = 0o027;

/** Warns of a file with a secret that other users can read or change. */
export function warnIfExposed(file: string, log: Log): void {
  const mode = modeOf(file);
  if (mode === undefined || (mode & EXPOSED) === 0) return;
  log.warn(
    { file, mode: mode.toString(8).padStart(4, "0") },
    "other users can access a file with a secret; set its mode to 0600 or 0640",
  );
}

/** Undefined if the file was replaced or removed after it was read: the warning must not fail what reads the file. */
function modeOf(file: string): number | undefined {
  try {
    return statSync(file).mode & 0o777;
  } catch {
    return undefined;
  }
}

/** Once for each file with keys of upstreams. */
export function warnOfExposedKeys(models: readonly Model[], log: Log): void {
  const files = models.flatMap(({ upstreams }) =>
    upstreams.map((upstream) => ("apiKeyFile" in upstream ? upstream.apiKeyFile : undefined)),
  );
  for (const file of new Set(files)) if (file !== undefined) warnIfExposed(file, log);
}
