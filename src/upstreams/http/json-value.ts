import { parseJson } from "../../domain/json.ts";
import { type Usage, usageOf } from "../../domain/price.ts";
import { UpstreamFailure } from "../upstream-failure.ts";

/** Readers for untrusted JSON: an unexpected value is read as undefined, and nothing throws. */
export type JsonObject = { readonly [name: string]: unknown };

function parseObject(text: string): JsonObject | undefined {
  try {
    return asObject(parseJson(text));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

export function firstObject(value: unknown): JsonObject | undefined {
  return Array.isArray(value) ? asObject(value[0]) : undefined;
}

export function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A token count. The charge depends on it, so nothing is rounded, converted or guessed. */
export function asCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

type ReportedCounts = {
  readonly inputTokens?: unknown;
  readonly outputTokens?: unknown;
  readonly cachedInput?: unknown;
  readonly cacheWrite?: unknown;
  readonly cacheWrite1h?: unknown;
  readonly reasoning?: unknown;
  readonly imageTokens?: unknown;
};

/**
 * Undefined unless both totals are valid. A detail that is not a count is ignored. Every prompt has tokens, so a report
 * without any comes from a server that does not count.
 */
export function reportedUsage(counts: ReportedCounts): Usage | undefined {
  const inputTokens = asCount(counts.inputTokens);
  const outputTokens = asCount(counts.outputTokens);
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  if (inputTokens + outputTokens === 0) return undefined;
  return usageOf({
    inputTokens,
    outputTokens,
    cachedInput: asCount(counts.cachedInput),
    cacheWrite: asCount(counts.cacheWrite),
    cacheWrite1h: asCount(counts.cacheWrite1h),
    reasoning: asCount(counts.reasoning),
    imageTokens: asCount(counts.imageTokens),
  });
}

/** Limits the input of the pattern below; UpstreamFailure.forLog truncates the text further. */
const MAX_TEXT_LENGTH = 4_096;
/** Retry-After in whole seconds; servers that limit tokens do not use the date format. */
const SECONDS = /^\d{1,6}$/;
/** API keys in their usual forms, and any text after an authentication scheme. */
const SECRETS = /\b(?:sk|vx_live|gsk|xai|key)[-_][\w*.…-]{4,}|\b(?:Bearer|Basic)\s+\S+/gi;

/**
 * Status for an error that comes without one: Anthropic's types, which other servers use too, and the codes of
 * OpenAI's responses.
 */
const STATUS_OF_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
  rate_limit_exceeded: 429,
  invalid_prompt: 400,
  invalid_image: 400,
  invalid_image_url: 400,
  image_parse_error: 400,
  failed_to_download_image: 400,
  image_content_policy_violation: 400,
};

/** The failure for a status other than 200, with the error message of the body. */
export function failureOfStatus(status: number, body: string, retryAfter: string | undefined): UpstreamFailure {
  const details = describe(asObject(parseObject(body)?.error));
  const retryAfterMs = retryAfter !== undefined && SECONDS.test(retryAfter) ? Number(retryAfter) * 1_000 : undefined;
  return UpstreamFailure.ofStatus(status, `the upstream responded with ${status}${details}`, retryAfterMs);
}

/** A JSON object from a 200 response. Throws if it contains an error. */
export function readObject(text: string): JsonObject {
  const value = parseObject(text);
  if (!value) throw new UpstreamFailure("garbled", "the response is not a JSON object");
  const { error } = value;
  if (error === undefined || error === null) return value;
  throw failureOf(asObject(error) ?? { message: error });
}

export function failureOf(error: JsonObject): UpstreamFailure {
  return UpstreamFailure.ofStatus(statusOf(error), `the upstream responded with an error${describe(error)}`);
}

function statusOf({ code, status, type }: JsonObject): number {
  for (const number of [code, status]) {
    if (typeof number === "number" && number >= 400 && number <= 599) return number;
  }
  for (const name of [type, code]) {
    const known = typeof name === "string" && Object.hasOwn(STATUS_OF_TYPE, name) && STATUS_OF_TYPE[name];
    if (known) return known;
  }
  return 500;
}

function describe(error: JsonObject | undefined): string {
  const parts = [error?.type, error?.code, error?.message]
    .map((part) => (typeof part === "number" ? String(part) : asText(part)))
    .filter((part) => part !== undefined && part !== "");
  if (parts.length === 0) return "";
  return `: ${parts.join(", ").slice(0, MAX_TEXT_LENGTH).replace(SECRETS, "[redacted]")}`;
}
