/**
 * What a generation used, as disjoint meters: no token counts for two of them, except for the parts of meters. The public
 * counts of input and output tokens are the sums.
 */
export type Usage = {
  /** Input tokens that were neither read from a cache nor written to it. */
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  /** The part of the cache writes that is kept for an hour. */
  readonly cacheWrite1h: number;
  /** Output tokens without reasoning. */
  readonly output: number;
  readonly reasoning: number;
  readonly images: number;
  /** The part of the input tokens that images have. For information only: they are charged as input. */
  readonly imageTokens: number;
};

/** The counts that an upstream reported; each detail is part of its total. */
type Reported = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInput?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly cacheWrite1h?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly imageTokens?: number | undefined;
};

/** Makes the counts disjoint. Details that exceed their total are lowered. */
export function usageOf(reported: Reported): Usage {
  const { inputTokens, outputTokens } = reported;
  const cachedInput = Math.min(reported.cachedInput ?? 0, inputTokens);
  const cacheWrite = Math.min(reported.cacheWrite ?? 0, inputTokens - cachedInput);
  const reasoning = Math.min(reported.reasoning ?? 0, outputTokens);
  return {
    input: inputTokens - cachedInput - cacheWrite,
    cachedInput,
    cacheWrite,
    cacheWrite1h: Math.min(reported.cacheWrite1h ?? 0, cacheWrite),
    output: outputTokens - reasoning,
    reasoning,
    images: 0,
    imageTokens: Math.min(reported.imageTokens ?? 0, inputTokens),
  };
}

export function inputTokensOf({ input, cachedInput, cacheWrite }: Usage): number {
  return input + cachedInput + cacheWrite;
}

export function outputTokensOf({ output, reasoning }: Usage): number {
  return output + reasoning;
}

/** Limits the usage to what the hold covers. The meters that usually cost least keep their counts. */
export function clampUsage(usage: Usage, maxInputTokens: number, maxOutputTokens: number): Usage {
  const cachedInput = Math.min(usage.cachedInput, maxInputTokens);
  const cacheWrite = Math.min(usage.cacheWrite, maxInputTokens - cachedInput);
  const input = Math.min(usage.input, maxInputTokens - cachedInput - cacheWrite);
  const output = Math.min(usage.output, maxOutputTokens);
  return {
    input,
    cachedInput,
    cacheWrite,
    cacheWrite1h: Math.min(usage.cacheWrite1h, cacheWrite),
    output,
    reasoning: Math.min(usage.reasoning, maxOutputTokens - output),
    images: usage.images,
    imageTokens: Math.min(usage.imageTokens, input + cachedInput + cacheWrite),
  };
}
