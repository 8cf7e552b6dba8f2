import { RELEASE } from "../store/schema/release.ts";
import type { Log } from "../telemetry/log.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Config } from "./config.ts";

/** Undefined, with nothing of OpenTelemetry loaded, if the settings enable no export. */
export async function openTelemetry({ telemetry }: Config, log: Log): Promise<Telemetry | undefined> {
  if (!telemetry) return undefined;
  const { startTelemetry } = await import("../telemetry/otel/start-telemetry.ts");
  return startTelemetry(telemetry, { log, version: RELEASE });
}
