/** Kinds of failure: whether to retry at the same upstream, and whether the upstream counts as unhealthy. */
const FAILURE_KINDS = {
  /** No connection could be made, so nothing was sent. */
  unreachable: { retry: true, unhealthy: true },
  /** No data within the timeout. A retry would make the caller wait that long again. */
  timeout: { retry: false, unhealthy: true },
  /** 429: the upstream works but is at its limit. */
  rate_limited: { retry: true, unhealthy: false },
  /** A permanent refusal of the request: any other 4xx, and redirects, which are not followed. */
  rejected: { retry: false, unhealthy: false },
  /** 5xx and 408, and errors of that kind inside a 200. */
  failed: { retry: true, unhealthy: true },
  /** The connection ended before the response did. */
  dropped: { retry: true, unhealthy: true },
  /** The response cannot be used: wrong format, unreadable, or too large. */
  garbled: { retry: false, unhealthy: true },
} as const;

type FailureKind = keyof typeof FAILURE_KINDS;

const MAX_LOG_LENGTH = 400;

/** Thrown by an upstream that did not complete a reply. The message is for the log only. */
export class UpstreamFailure extends Error {
  readonly kind: FailureKind;
  /** The wait that the upstream requests; undefined if it gives none. */
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

  /** A copy for the log: without the upstream's API key, in case the response repeats it, and truncated. */
  forLog(apiKey: string | undefined): UpstreamFailure {
    const text = apiKey === undefined ? this.message : this.message.replaceAll(apiKey, "[redacted]");
    return new UpstreamFailure(this.kind, text.slice(0, MAX_LOG_LENGTH), this.retryAfterMs);
  }

  get mayRetry(): boolean {
    return FAILURE_KINDS[this.kind].retry;
  }

  get isUnhealthy(): boolean {
    return FAILURE_KINDS[this.kind].unhealthy;
  }

  /** The only failure that no prompt can cause: all others occur after the request was sent. */
  get isUnconnected(): boolean {
    return this.kind === "unreachable";
  }
}

function kindOfStatus(status: number): FailureKind {
  if (status === 429) return "rate_limited";
  return status === 408 || status >= 500 ? "failed" : "rejected";
}
