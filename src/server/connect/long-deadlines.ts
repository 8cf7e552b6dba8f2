/** No call runs longer. Node's timers fire at once if they are set to more than 24.8 days. */
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
 * Lowers a deadline of more than an hour to an hour. An invalid deadline is unchanged, and Connect refuses
 * it.
 */
export function lowerLongDeadlines(headers: Headers): void {
  const grpc = /^(\d{1,8})([HMSmun])$/.exec(headers.get("grpc-timeout") ?? "");
  if (grpc && Number(grpc[1]) * (MS_OF_UNIT[grpc[2] as string] ?? 0) > MAX_DEADLINE_MS) {
    headers.set("grpc-timeout", `${MAX_DEADLINE_MS}m`);
  }
  const connect = /^\d{1,10}$/.exec(headers.get("connect-timeout-ms") ?? "");
  if (connect && Number(connect[0]) > MAX_DEADLINE_MS) {
    headers.set("connect-timeout-ms", String(MAX_DEADLINE_MS));
  }
}
