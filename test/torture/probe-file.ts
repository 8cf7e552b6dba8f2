/** What the preload writes down once a second, in the server's process. */
export type ProbeLine = {
  /** Milliseconds since 1970, by a clock that never goes back. */
  readonly at: number;
  readonly rss: number;
  readonly heapUsed: number;
  /** After a collection; not in every line. */
  readonly heapKept?: number;
  readonly external: number;
  readonly handles: number;
  readonly pauseMs: number;
  /** The most time of a processor that the main thread took from one look, 10 ms after the last, to the next. */
  readonly workMs: number;
};

export function readProbe(text: string): ProbeLine[] {
  return text
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as ProbeLine);
}
