/** Longer than any call. Node's timers fire at once if they are set to more than 24.8 days. */
const MAX_DEADLINE_MS = 3_600_000;

const MS_OF_UNIT: Record<string, number> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/**
 * Replaces a deadline by its remaining time, at most an hour: Connect starts counting when it gets
 * the call, which is after the request was read. An invalid deadline is unchanged, and Connect refuses it.
 */
export function updateDeadline(headers: Headers, elapsedMs: number): void {
  const grpc = /^(\d{1,8})([HMSmun])$/.exec(headers.get("grpc-timeout") ?? "");
  if (grpc) {
    const givenMs = Number(grpc[1]) * (MS_OF_UNIT[grpc[2] as string] ?? 0);
    headers.set("grpc-timeout", `${remainingMs(givenMs, elapsedMs)}m`);
  }
  const connect = /^\d{1,10}$/.exec(headers.get("connect-timeout-ms") ?? "");
  if (connect) headers.set("connect-timeout-ms", String(remainingMs(Number(connect[0]), elapsedMs)));
}

function remainingMs(givenMs: number, elapsedMs: number): number {
  return Math.max(0, Math.ceil(Math.min(givenMs, MAX_DEADLINE_MS) - elapsedMs));
}
