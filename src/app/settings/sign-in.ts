import type { Micros } from "../../domain/money.ts";
import type { SignUp } from "../../members/service.ts";
import type { OidcSettings } from "../../server/sign-in/oidc-client.ts";
import { ConfigError } from "../start-error.ts";

type Values = {
  readonly VX_OIDC_ISSUER?: string | undefined;
  readonly VX_OIDC_CLIENT_ID?: string | undefined;
  readonly VX_OIDC_CLIENT_SECRET?: string | undefined;
  readonly VX_CUSTOMER_OIDC_ISSUER?: string | undefined;
  readonly VX_CUSTOMER_OIDC_CLIENT_ID?: string | undefined;
  readonly VX_CUSTOMER_OIDC_CLIENT_SECRET?: string | undefined;
  readonly VX_SIGN_UP: SignUp["mode"];
  readonly VX_SIGN_UP_PLAN: string;
  readonly VX_SIGN_UP_CREDIT: Micros;
  readonly VX_SIGN_UP_CREDIT_DAYS?: number | undefined;
  readonly VX_SIGN_UP_DOMAINS: readonly string[];
};

/** How operators and customers sign in, and who may sign up. */
export function signInSettings(values: Values) {
  return {
    oidc: oidcSettings("VX_OIDC", values),
    customerOidc: oidcSettings("VX_CUSTOMER_OIDC", values),
    signUp: signUpSettings(values),
  };
}

function signUpSettings(values: Values): SignUp {
  const { VX_SIGN_UP: mode } = values;
  if (mode !== "closed" && values.VX_CUSTOMER_OIDC_ISSUER === undefined)
    throw new ConfigError(`VX_SIGN_UP: "${mode}" requires the settings VX_CUSTOMER_OIDC_…`);
  return {
    mode,
    plan: values.VX_SIGN_UP_PLAN,
    creditMicros: values.VX_SIGN_UP_CREDIT,
    creditDays: values.VX_SIGN_UP_CREDIT_DAYS,
    domains: values.VX_SIGN_UP_DOMAINS,
  };
}

/** The problem of a comma-separated list of domains; undefined if it is valid. */
export function domainsProblem(list: string): string | undefined {
  const wrong = domainsOf(list).find((domain) => !/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(domain));
  if (wrong === undefined) return undefined;
  return `${JSON.stringify(wrong)} is not a domain; list domains such as example.com,example.org`;
}

export function domainsOf(list: string): string[] {
  return list.split(",").map((domain) => domain.trim().toLowerCase());
}

/** The problem of the issuer; undefined if it is valid. Over plain HTTP, an attacker in the network could sign in as anyone. */
export function issuerProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url?.hostname ?? "");
  const isAllowed = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback);
  if (isAllowed && url.search === "" && url.hash === "" && url.username === "") return undefined;
  return "must be the https URL of an issuer, such as https://accounts.google.com";
}

function oidcSettings(prefix: "VX_OIDC" | "VX_CUSTOMER_OIDC", values: Values): OidcSettings | undefined {
  const {
    [`${prefix}_ISSUER` as const]: issuer,
    [`${prefix}_CLIENT_ID` as const]: clientId,
    [`${prefix}_CLIENT_SECRET` as const]: clientSecret,
  } = values;
  if (issuer !== undefined && clientId !== undefined && clientSecret !== undefined) return { issuer, clientId, clientSecret };
  if (issuer === undefined && clientId === undefined && clientSecret === undefined) return undefined;
  throw new ConfigError(`${prefix}_ISSUER, ${prefix}_CLIENT_ID, ${prefix}_CLIENT_SECRET: set all of them, or none`);
}
