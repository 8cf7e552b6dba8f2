/** A line that the preload writes once a second in the server's process. */
export type ProbeLine = {
  /** Milliseconds since 1970, from a monotonic clock. */
  readonly at: number;
  readonly rss: number;
  readonly heapUsed: number;
  /** Heap after a collection; not in every line. */
  readonly heapKept?: number;
  readonly external: number;
  readonly handles: number;
  readonly pauseMs: number;
  /** Maximum CPU time of the main thread between two samples, which are 10 ms apart. */
  readonly workMs: number;
};

export function readProbe(text: string): ProbeLine[] {
  return text
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as ProbeLine);
}
