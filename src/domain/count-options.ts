/** How tokens are counted. */
export type CountOptions = {
  readonly signal?: AbortSignal;
  /** What has more tokens need not be counted to its end. */
  readonly most?: number;
  /** Who asks: many large texts of one account keep no other waiting for long. */
  readonly payer?: string;
};
