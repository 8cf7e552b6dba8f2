/** How a try can fail, whether another try at the same upstream may help, and whether it means a sick upstream. */
const TREATMENTS = {
  /** No connection could be made, so nothing was sent. */
  unreachable: { retry: true, sick: true },
  /** Silent for too long. Trying again would keep the caller waiting as long once more. */
  timeout: { retry: false, sick: true },
  /** 429: it works, and is busy. */
  rate_limited: { retry: true, sick: false },
  /** It refuses the request, now and later: any other 4xx, and redirects, which are not followed. */
  rejected: { retry: false, sick: false },
  /** 5xx and 408, also inside a 200. */
  failed: { retry: true, sick: true },
  /** The connection ended before the answer did. */
  dropped: { retry: true, sick: true },
  /** The answer cannot be used: another format, unreadable, or endless. */
  garbled: { retry: false, sick: true },
} as const;

export type FailureKind = keyof typeof TREATMENTS;

const LOG_LENGTH_MAX = 400;

/** What an upstream throws when it did not come to the end of a reply. The text is for the log only. */
export class UpstreamFailure extends Error {
  readonly kind: FailureKind;
  /** How long the upstream wants to be left alone, where it says so. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: FailureKind, message: string, retryAfterMs?: number) {
    super(message);
    this.name = "UpstreamFailure";
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }

  static ofStatus(status: number, message: string, retryAfterMs?: number): UpstreamFailure {
    return new UpstreamFailure(kindOfStatus(status), message, retryAfterMs);
  }

  /** The same without the key it was asked with, should the upstream have repeated that, and not too long. */
  forLog(apiKey: string | undefined): UpstreamFailure {
    const text = apiKey === undefined ? this.message : this.message.replaceAll(apiKey, "[redacted]");
    return new UpstreamFailure(this.kind, text.slice(0, LOG_LENGTH_MAX), this.retryAfterMs);
  }

  get mayRetry(): boolean {
    return TREATMENTS[this.kind].retry;
  }

  get isSick(): boolean {
    return TREATMENTS[this.kind].sick;
  }

  /** The only failure that no prompt can cause: every other one comes after the request was sent. */
  get isUnconnected(): boolean {
    return this.kind === "unreachable";
  }
}

function kindOfStatus(status: number): FailureKind {
  if (status === 429) return "rate_limited";
  return status === 408 || status >= 500 ? "failed" : "rejected";
}
