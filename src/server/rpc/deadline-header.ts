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

/** The deadline of gRPC and gRPC-Web, at most an hour; undefined if it is not valid. */
export function grpcTimeoutMs(header: string): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(header);
  return match
    ? Math.min(Number(match[1]) * (MS_OF_UNIT[match[2] as string] ?? 0), MAX_DEADLINE_MS)
    : undefined;
}

/** The same of Connect. */
export function connectTimeoutMs(header: string): number | undefined {
  return /^\d{1,10}$/.test(header) ? Math.min(Number(header), MAX_DEADLINE_MS) : undefined;
}
