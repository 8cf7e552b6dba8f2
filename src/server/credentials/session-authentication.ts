import { fingerprintOf, isWellFormedSessionToken } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Credentials } from "../call.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";

/** A cookie of a session. */
type SessionCookie = {
  readonly name: string;
  /** The paths to which browsers send it. */
  readonly path: string;
};

type Options<Session> = {
  readonly cookie: SessionCookie;
  /** The URL of the listener, if it is configured. */
  readonly url: string | undefined;
  /** Whether browsers reach the listener over TLS: then they send the cookie only there. */
  readonly isSecure: boolean;
  /** The reason of refusals. */
  readonly refusal: "invalid_operator_token" | "invalid_session";
  /** Looks up the fingerprint of a session, for every request: an ended session is refused at once. */
  readonly find: (fingerprint: string, isUse: boolean) => Promise<Session | undefined>;
  readonly failures: FailedAuthentications;
};

/**
 * Sessions of a page, in a cookie. Browsers add cookies to the requests of any page, so a session is accepted only
 * from pages of this listener.
 */
export class SessionAuthentication<Session> {
  readonly #options: Options<Session>;

  constructor(options: Options<Session>) {
    this.#options = options;
  }

  /**
   * With these prefixes, browsers accept the cookie only over TLS, and the first one only from this host, not from another host of its
   * domain: it requires the path "/".
   */
  get cookie(): SessionCookie {
    const { cookie, isSecure } = this.#options;
    if (!isSecure) return cookie;
    return { ...cookie, name: `${cookie.path === "/" ? "__Host-" : "__Secure-"}${cookie.name}` };
  }

  /**
   * Another host of the domain can set a cookie with another path than "/", such as that of its own session. This second cookie, which
   * it cannot set, names the token with which it was set.
   */
  get #binding(): SessionCookie | undefined {
    const { cookie, isSecure } = this.#options;
    return isSecure && cookie.path !== "/" ? { name: `__Host-${cookie.name}`, path: "/" } : undefined;
  }

  /** The cookies to set for a session, with their values; with an empty token, the cookies to delete. */
  cookiesFor(token: string): readonly (SessionCookie & { readonly value: string })[] {
    const binding = this.#binding;
    const bound = binding && { ...binding, value: token && bindingOf(token) };
    return [{ ...this.cookie, value: token }, ...(bound ? [bound] : [])];
  }

  /** A token in the Authorization header has precedence. */
  isCarriedBy(request: Credentials): boolean {
    return request.headers("authorization").length === 0 && cookiesOf(request, this.cookie.name).length > 0;
  }

  /** The session of a call. The header that Connect's clients send cannot be sent by forms. */
  async authenticateCall(request: Credentials, isUse: boolean): Promise<Session> {
    this.requireSameOrigin(request);
    if (request.headers("connect-protocol-version").length !== 1)
      throw this.#refused("A session requires the header 'Connect-Protocol-Version' of the Connect protocol.");
    return await this.authenticate(request, isUse);
  }

  /** The session of a request that changes nothing, or whose origin is checked. */
  async authenticate(request: Credentials, isUse: boolean): Promise<Session> {
    const { find, failures } = this.#options;
    const fingerprint = fingerprintOf(this.tokenOf(request));
    failures.refuseBlocked(request.remoteAddress, fingerprint);
    const session = await find(fingerprint, isUse);
    if (!session) {
      failures.addFailure(request.remoteAddress, fingerprint);
      throw this.#refused("The session has expired or was ended. Sign in again.");
    }
    failures.addValid(fingerprint);
    return session;
  }

  /** Throws for a request that a page of another origin may have caused. */
  requireSameOrigin(request: Credentials): void {
    if (!isSameOrigin(request, this.#options.url))
      throw this.#refused("A session is accepted only from pages of this listener itself.");
  }

  tokenOf(request: Credentials): string {
    const [token = "", ...others] = cookiesOf(request, this.cookie.name);
    const binding = this.#binding;
    const isBound = !binding || cookiesOf(request, binding.name).join() === bindingOf(token);
    if (others.length > 0 || !isWellFormedSessionToken(token) || !isBound)
      throw this.#refused("The session is not valid. Sign in again.");
    return token;
  }

  #refused(message: string): DomainError {
    return new DomainError(this.#options.refusal, { message });
  }
}

/** Not the fingerprint by which the session is found: browsers send this to all paths. */
function bindingOf(token: string): string {
  return fingerprintOf(`cookie of ${token}`);
}

/** All values of a cookie: another host of the domain may have set a second one. */
export function cookiesOf(request: Credentials, name: string): string[] {
  return request
    .headers("cookie")
    .flatMap((header) => header.split(";"))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
}

/**
 * Whether a page of another origin cannot have caused the request. Pages can change neither header. Browsers omit
 * Sec-Fetch-Site in requests to plain HTTP addresses of other machines, and Origin in some that no script makes.
 */
function isSameOrigin(request: Credentials, ownUrl: string | undefined): boolean {
  const sites = request.headers("sec-fetch-site");
  const origins = request.headers("origin");
  const hosts = hostsOf(request);
  // A proxy may replace the host, so a configured address counts in its place.
  const isOwn = (origin: string) =>
    ownUrl === undefined ? URL.canParse(origin) && hosts.every((host) => new URL(origin).host === host) : origin === ownUrl;
  return (
    hosts.length > 0 && sites.length + origins.length > 0 && sites.every((site) => site === "same-origin") && origins.every(isOwn)
  );
}

/** The hosts that the request names: over HTTP/2, the authority. */
export function hostsOf(request: Credentials): string[] {
  return [...request.headers("host"), ...request.headers(":authority")];
}
