/** Options for counting tokens. */
export type CountOptions = {
  readonly signal?: AbortSignal;
  /** Counting may stop once there are more tokens than this. */
  readonly maxTokens?: number;
  /** The account of the call, so that many large texts of one account do not delay other accounts for long. */
  readonly payer?: string;
};
