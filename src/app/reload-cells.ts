import type { Log } from "../telemetry/log.ts";
import { readCells } from "./cells-file.ts";
import { ConfigError } from "./config-error.ts";
import type { WaitingCells } from "./waiting-cells.ts";

/** Reloads cells.yaml: new cells can be used from now on. An invalid file changes nothing. */
export async function reloadCells(path: string | undefined, waiting: WaitingCells, log: Log): Promise<void> {
  try {
    const { added, changed } = waiting.reload((await readCells(path)) ?? []);
    if (added.length > 0) log.info({ added }, "added cells");
    if (changed.length > 0) log.error({ changed }, "changed and removed cells take effect after a restart");
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error({ mistakes: error.message }, "reloading cells failed, the previous cells stay in use");
  }
}
