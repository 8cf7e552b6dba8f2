import { DomainError } from "../../domain/errors.ts";
import type { RateWindow } from "../../store/admit.ts";
import type { HeaderSink } from "../http.ts";

/** The 429 of a key whose minute is full. */
export class RateLimitError extends DomainError {
  readonly window: RateWindow;

  constructor(window: RateWindow) {
    const { limit, secondsLeft } = window;
    super("rate_limit_exceeded", {
      message: `The limit of ${limit} requests per minute of this key is exceeded. Wait ${secondsLeft} s.`,
      metadata: { rate_limit_rpm: String(limit) },
      retryAfterSeconds: secondsLeft,
    });
    this.window = window;
  }
}

/** The 403 of a key without the scope of a method. The call takes no slot of the window. */
export class ScopeError extends DomainError {
  readonly window: RateWindow | undefined;

  constructor(scope: string, window: RateWindow | undefined) {
    super("insufficient_scope", {
      message: `The API key lacks the scope "${scope}".`,
      metadata: { scope },
    });
    this.window = window;
  }
}

/** Announces the window in the headers of the IETF draft and in those that OpenAI clients read. */
export function setRateHeaders(response: HeaderSink, { limit, remaining, secondsLeft }: RateWindow): void {
  response.setHeader("ratelimit-policy", `"rpm";q=${limit};w=60`);
  response.setHeader("ratelimit", `"rpm";r=${remaining};t=${secondsLeft}`);
  response.setHeader("x-ratelimit-limit-requests", String(limit));
  response.setHeader("x-ratelimit-remaining-requests", String(remaining));
  response.setHeader("x-ratelimit-reset-requests", `${secondsLeft}s`);
}
