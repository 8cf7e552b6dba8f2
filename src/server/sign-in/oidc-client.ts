import { createHash } from "node:crypto";
import type { ClientAuth, Configuration, CustomFetch } from "openid-client";
import type { Identity } from "../../operators/store.ts";

/**
 * Why a sign-in failed. "outdated": the browser has no sign-in with this response; "refused": the provider refused, or its
 * response is invalid; "unknown": no operator has the identity; "unreachable": the provider does not respond;
 * "unavailable": the database does not respond.
 */
export type SignInFailure = "outdated" | "refused" | "unknown" | "unreachable" | "busy" | "unavailable";

export class SignInError extends Error {
  readonly failure: SignInFailure;

  constructor(failure: SignInFailure, detail: string) {
    super(detail);
    this.failure = failure;
  }
}

export type OidcSettings = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
};

const TIMEOUT_SECONDS = 5;
const MAX_RESPONSE_BYTES = 262_144;
/** How long the endpoints of the provider are cached. */
const DISCOVERY_MS = 3_600_000;
/** Anyone can start a sign-in, and each one that returns from the provider makes requests to it. */
const MAX_EXCHANGES = 16;
const MAX_SUBJECT_CHARACTERS = 255;
const MAX_EMAIL_CHARACTERS = 254;
const MAX_DETAIL_CHARACTERS = 300;
/** Control characters. PostgreSQL cannot store NUL. */
const CONTROL = /\p{Cc}/u;

class TooLargeError extends Error {
  override readonly message = `the response of the provider has more than ${MAX_RESPONSE_BYTES} bytes`;
}

/**
 * Signs users in at an OpenID Connect provider: authorization code with PKCE. The library is loaded at the first
 * sign-in, because it takes about 9 MB of memory.
 */
export class OidcClient {
  readonly #settings: OidcSettings;
  readonly #now: () => number;
  #discovered: { readonly configuration: Promise<Configuration>; readonly atMs: number } | undefined;
  #exchanges = 0;

  constructor(settings: OidcSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  /** The address at the provider to which the browser is sent. */
  async authorizationUrl(secret: string, redirectUri: string): Promise<URL> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import("openid-client");
    const configuration = await this.#configuration();
    const { state, nonce, verifier } = checksOf(secret);
    return buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: "openid email",
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
  }

  /** The user that the provider identified, by the URL of its redirect. Throws SignInError. */
  async identityOf(url: URL, secret: string): Promise<Identity> {
    const { state, nonce, verifier } = checksOf(secret);
    // Checked first, so that a response to another sign-in causes no request to the provider.
    if (url.searchParams.get("state") !== state) throw new SignInError("outdated", "the state differs");
    if (this.#exchanges >= MAX_EXCHANGES) throw new SignInError("busy", "too many sign-ins at a time");
    this.#exchanges++;
    try {
      const { authorizationCodeGrant, fetchUserInfo } = await import("openid-client");
      const configuration = await this.#configuration();
      const tokens = await authorizationCodeGrant(configuration, url, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new SignInError("refused", "the provider sent no ID token");
      const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
      const emailClaims =
        claims.email === undefined && hasUserInfo ? await fetchUserInfo(configuration, tokens.access_token, claims.sub) : claims;
      if (claims.sub.length > MAX_SUBJECT_CHARACTERS || CONTROL.test(claims.sub))
        throw new SignInError("refused", "the subject is too long or has control characters");
      return { issuer: claims.iss, subject: claims.sub, verifiedEmail: verifiedEmailOf(emailClaims) };
    } catch (error) {
      if (error instanceof SignInError) throw error;
      throw new SignInError(isUnreachable(error) ? "unreachable" : "refused", detailOf(error));
    } finally {
      this.#exchanges--;
    }
  }

  async #configuration(): Promise<Configuration> {
    if (!this.#discovered || this.#now() - this.#discovered.atMs > DISCOVERY_MS) {
      this.#discovered = { configuration: discover(this.#settings), atMs: this.#now() };
    }
    const { configuration } = this.#discovered;
    try {
      return await configuration;
    } catch (error) {
      if (this.#discovered?.configuration === configuration) this.#discovered = undefined;
      throw new SignInError("unreachable", detailOf(error));
    }
  }
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<Configuration> {
  const client = await import("openid-client");
  const url = new URL(issuer);
  // Settings allow plain HTTP only for loopback addresses.
  const insecure = url.protocol === "http:" ? [client.allowInsecureRequests] : [];
  const authentication: ClientAuth = (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const isBasic = methods.includes("client_secret_basic");
    const authenticate = isBasic ? client.ClientSecretBasic : client.ClientSecretPost;
    authenticate(clientSecret)(server, ...rest);
  };
  const configuration = await client.discovery(url, clientId, undefined, authentication, {
    // Also verifies the signature of ID tokens, although they come directly from the provider.
    execute: [...insecure, client.enableNonRepudiationChecks],
    timeout: TIMEOUT_SECONDS,
    [client.customFetch]: fetchBounded,
  });
  // The library accepts templates of issuers, with which users of every tenant could sign in.
  const metadata = configuration.serverMetadata();
  if (new URL(metadata.issuer).href !== url.href) throw new Error(`the issuer of the provider is ${metadata.issuer}`);
  for (const name of ["authorization_endpoint", "token_endpoint", "jwks_uri"] as const)
    requireEndpoint(name, metadata[name], url.protocol);
  return configuration;
}

/** The library checks an endpoint only when it is used; by then the discovery document would be cached. */
function requireEndpoint(name: string, endpoint: string | undefined, issuerProtocol: string): void {
  const protocol = URL.canParse(endpoint ?? "") ? new URL(endpoint ?? "").protocol : "";
  if (protocol === "https:" || (protocol === "http:" && issuerProtocol === "http:")) return;
  throw new Error(`the provider has no usable ${name}: ${endpoint}`);
}

/** The library sets the timeout, and follows no redirect. */
const fetchBounded: CustomFetch = async (url, { signal, ...options }) => {
  const response = await fetch(url, { ...options, body: options.body ?? null, signal: signal ?? null });
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new TooLargeError();
    pieces.push(piece);
  }
  const headers = new Headers(response.headers);
  headers.delete("content-encoding");
  headers.delete("content-length");
  return new Response(bytes === 0 ? null : Buffer.concat(pieces), { status: response.status, headers });
};

/** Three values derived from the one that the browser keeps. None of them reveals another one. */
function checksOf(secret: string) {
  const derive = (name: string) => createHash("sha256").update(`${name}:${secret}`).digest("base64url");
  return { state: derive("state"), nonce: derive("nonce"), verifier: derive("verifier") };
}

function verifiedEmailOf(claims: Readonly<Record<string, unknown>>): string {
  const isTrue = (claim: unknown) => claim === true || claim === 1 || claim === "true" || claim === "1";
  const { email, email_verified: verified } = claims;
  // Microsoft sends xms_edov in place of email_verified: the tenant has proved that it owns the domain of the address.
  const isVerified = isTrue(verified) || (verified === undefined && isTrue(claims.xms_edov));
  const isUsable = typeof email === "string" && email.length <= MAX_EMAIL_CHARACTERS && !CONTROL.test(email);
  return isVerified && isUsable ? email : "";
}

/** The codes of failures of the provider itself: no response, or one that is not OpenID Connect. */
const UNREACHABLE = /^OAUTH_(TIMEOUT|ABORT|RESPONSE_IS_NOT_CONFORM|RESPONSE_IS_NOT_JSON|PARSE_ERROR)$/;

function isUnreachable(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: unknown };
  return error instanceof TypeError || cause instanceof TooLargeError || UNREACHABLE.test(code ?? "");
}

/** For the log. Messages name what differs; other properties of an error can contain codes and tokens. */
function detailOf(error: unknown): string {
  const { message, cause, error: oauthError } = error as Error & { error?: unknown };
  const parts = [message, oauthError, cause instanceof Error ? cause.message : undefined];
  return parts
    .filter((part) => typeof part === "string" && part !== "")
    .join(": ")
    .slice(0, MAX_DETAIL_CHARACTERS);
}
