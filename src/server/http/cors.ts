import { cors as connect } from "@connectrpc/connect";
import type { HttpRequest, HttpResponse } from "./message.ts";

/** The headers of responses that browsers hide from a page unless they are listed. */
const EXPOSED_HEADERS = [
  ...connect.exposedHeaders,
  "x-request-id",
  "ratelimit-policy",
  "ratelimit",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "retry-after",
  "x-should-retry",
  "idempotency-replayed",
  "x-vx-max-tokens",
  "x-vx-ignored",
  "x-next-page-token",
  "x-through-seq",
  "www-authenticate",
  "allow",
  "accept-encoding",
]
  .join(", ")
  .toLowerCase();

/**
 * "*" stands for headers that the server ignores, such as those of SDKs. It never includes Authorization, and
 * older browsers ignore it.
 */
const ALLOWED_HEADERS = [...connect.allowedHeaders, "authorization", "idempotency-key", "x-request-id", "*"]
  .join(", ")
  .toLowerCase();

const ALLOWED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/** Chromium's maximum. */
const PREFLIGHT_MAX_AGE_SECONDS = 7_200;

/**
 * The origins whose pages may read responses (Fetch standard, CORS protocol). Credentials of the browser are
 * never allowed: a call authenticates only with its Authorization header.
 */
export class Cors {
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /** The headers of each response to an allowed origin; undefined for any other request. */
  headersFor({ headers: { origin } }: HttpRequest): Readonly<Record<string, string>> | undefined {
    if (typeof origin !== "string" || !this.#origins.has(origin)) return undefined;
    return {
      "access-control-allow-origin": origin,
      "access-control-expose-headers": EXPOSED_HEADERS,
      vary: "Origin",
    };
  }

  /** Sets the same headers. Returns whether the origin of the request is allowed. */
  setHeaders(request: HttpRequest, response: HttpResponse): boolean {
    const headers = this.headersFor(request);
    if (!headers) return false;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    return true;
  }
}

/** Whether a browser asks for permission to send another request. */
export function isPreflight({ method, headers }: HttpRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** The response is the same for every path, so it does not reveal routes. */
export function answerPreflight(response: HttpResponse, requestId: string): void {
  response.setHeader("x-request-id", requestId);
  response.setHeader("access-control-allow-methods", ALLOWED_METHODS);
  response.setHeader("access-control-allow-headers", ALLOWED_HEADERS);
  response.setHeader("access-control-max-age", String(PREFLIGHT_MAX_AGE_SECONDS));
  response.statusCode = 204;
  response.end();
}

/** The Vary header of a response that also depends on these request headers. */
export function varyWith(response: HttpResponse, names: string): string {
  const before = response.getHeader("vary");
  return before === undefined ? names : `${before}, ${names}`;
}
