import { DomainError } from "../../domain/errors.ts";
import type { Credentials } from "./bearer.ts";

/**
 * Throws for a request that a page of another origin may have caused. Pages can change neither header. Browsers omit
 * Sec-Fetch-Site in requests to plain HTTP addresses of other machines, and Origin in some that no script makes.
 */
export function requireSameOrigin(request: Credentials, ownUrl: string | undefined): void {
  const sites = request.headers("sec-fetch-site");
  const origins = request.headers("origin");
  const hosts = hostsOf(request);
  // A proxy may replace the host, so a configured address counts in its place.
  const isOwn = (origin: string) =>
    ownUrl === undefined
      ? URL.canParse(origin) && hosts.every((host) => new URL(origin).host === host)
      : origin === ownUrl;
  const isSameOrigin =
    hosts.length > 0 &&
    sites.length + origins.length > 0 &&
    sites.every((site) => site === "same-origin") &&
    origins.every(isOwn);
  if (isSameOrigin) return;
  throw new DomainError("invalid_operator_token", {
    message: "A session is accepted only from pages of the operator listener itself.",
  });
}

/** The hosts that the request names: over HTTP/2, the authority. */
export function hostsOf(request: Credentials): string[] {
  return [...request.headers("host"), ...request.headers(":authority")];
}
