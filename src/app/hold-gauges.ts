import type { Cells } from "../store/driver/cells.ts";
import { readHoldFigures } from "../store/hold-figures.ts";
import type { Metrics } from "../telemetry/metrics.ts";

const GAUGES = {
  open: { name: "vx_holds", help: "Open holds of all servers that use the database." },
  heldMicros: { name: "vx_held_micros", help: "The sum of the open holds, in micros." },
  expired: { name: "vx_expired_holds", help: "Holds that have expired and are not released yet." },
};

/** Register these in one process of a server only: they are about the whole database. */
export function registerHoldGauges(metrics: Metrics, database: Cells): void {
  metrics.gaugesRead(GAUGES, () => readHoldFigures(database));
}
