import type { OidcSettings } from "../server/sign-in/oidc-client.ts";
import { ConfigError } from "./config-error.ts";

/** The problem of the URL of the operator listener; undefined if it is valid. */
export function adminUrlProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return undefined;
  return "must be a URL with host and port only, such as https://ops.example:8081";
}

/** The problem of the issuer; undefined if it is valid. Over plain HTTP, an attacker in the network could sign in as anyone. */
export function issuerProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url?.hostname ?? "");
  const isAllowed = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback);
  if (isAllowed && url.search === "" && url.hash === "" && url.username === "") return undefined;
  return "must be the https URL of an issuer, such as https://accounts.google.com";
}

type Values = {
  readonly VX_OIDC_ISSUER?: string | undefined;
  readonly VX_OIDC_CLIENT_ID?: string | undefined;
  readonly VX_OIDC_CLIENT_SECRET?: string | undefined;
};

/** Undefined without sign-in. */
export function oidcSettings(values: Values): OidcSettings | undefined {
  const { VX_OIDC_ISSUER: issuer, VX_OIDC_CLIENT_ID: clientId, VX_OIDC_CLIENT_SECRET: clientSecret } = values;
  if (issuer !== undefined && clientId !== undefined && clientSecret !== undefined)
    return { issuer, clientId, clientSecret };
  if (issuer === undefined && clientId === undefined && clientSecret === undefined) return undefined;
  throw new ConfigError("VX_OIDC_ISSUER, VX_OIDC_CLIENT_ID, VX_OIDC_CLIENT_SECRET: set all of them, or none");
}
