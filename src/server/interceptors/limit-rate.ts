import { DomainError } from "../../domain/errors.ts";
import type { MinuteLimit } from "../../generations/bill-statement.ts";
import type { RateWindow } from "../../keys/admit.ts";
import type { HeaderSink } from "../http/message.ts";
import type { AdmittedCall, Interceptor } from "./interceptor.ts";

/** Refuses a call that has no slot in the minute of its key. The statement that admits the call takes the slot. */
export function limitRate(): Interceptor<AdmittedCall> {
  return (next) => (call) => {
    const { window, isOverLimit } = call.admitted;
    if (window) setRateHeaders(call, window);
    if (window && isOverLimit) throw rateLimitError(window);
    return next(call);
  };
}

function rateLimitError({ limit, secondsLeft }: RateWindow): DomainError {
  return new DomainError("rate_limit_exceeded", {
    message: `The limit of ${limit} requests per minute of this key is exceeded. Wait ${secondsLeft} s.`,
    metadata: { rate_limit_rpm: String(limit) },
    retryAfterSeconds: secondsLeft,
  });
}

/** Announces the window in the headers of the IETF draft and in those that OpenAI clients read. */
export function setRateHeaders(response: HeaderSink, { limit, remaining, secondsLeft }: RateWindow): void {
  response.setHeader("ratelimit-policy", `"rpm";q=${limit};w=60`);
  response.setHeader("ratelimit", `"rpm";r=${remaining};t=${secondsLeft}`);
  response.setHeader("x-ratelimit-limit-requests", String(limit));
  response.setHeader("x-ratelimit-remaining-requests", String(remaining));
  response.setHeader("x-ratelimit-reset-requests", `${secondsLeft}s`);
}

/** Announces the limits of the minute of a metered call beside its rate window: of each metric the tightest. */
export function setLimitHeaders(response: HeaderSink, window: RateWindow | undefined, limits: readonly MinuteLimit[]): void {
  const tightest = new Map<string, MinuteLimit>();
  for (const limit of limits) {
    const other = tightest.get(limit.metric);
    if (!other || limit.remaining < other.remaining) tightest.set(limit.metric, limit);
  }
  const items = [...tightest.values()];
  const policies = items.map(({ metric, amount }) => `"${metric}";q=${amount};w=60`);
  const states = items.map(({ metric, remaining, secondsLeft }) => `"${metric}";r=${remaining};t=${secondsLeft}`);
  if (window) {
    policies.unshift(`"rpm";q=${window.limit};w=60`);
    states.unshift(`"rpm";r=${window.remaining};t=${window.secondsLeft}`);
  }
  response.setHeader("ratelimit-policy", policies.join(", "));
  response.setHeader("ratelimit", states.join(", "));
  const tokens = tightest.get("tokens");
  if (!tokens) return;
  response.setHeader("x-ratelimit-limit-tokens", String(tokens.amount));
  response.setHeader("x-ratelimit-remaining-tokens", String(tokens.remaining));
  response.setHeader("x-ratelimit-reset-tokens", `${tokens.secondsLeft}s`);
}
