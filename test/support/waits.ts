import { vi } from "vitest";

/**
 * How long tests wait for what must happen, unless they say otherwise. A busy machine can need longer than the second after which
 * Vitest gives up.
 */
const PATIENCE_MS = 20_000;

/** Without isolation, this file runs once for each file of tests. */
const PATIENT = Symbol.for("vx.patient");

for (const name of ["waitFor", "waitUntil"] as const) {
  const wait = vi[name] as typeof vi.waitFor & { [PATIENT]?: true };
  if (wait[PATIENT]) continue;
  const patient: typeof vi.waitFor = (check, options) =>
    wait(check, { timeout: PATIENCE_MS, ...(typeof options === "number" ? { timeout: options } : options) });
  Object.assign(vi, { [name]: Object.assign(patient, { [PATIENT]: true }) });
}
