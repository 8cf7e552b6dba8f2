import { fingerprintOf, isWellFormedSessionToken } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Session } from "../../store/operators.ts";
import type { Credentials } from "./bearer.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";

type Options = {
  /** The URL of the operator listener, if it is configured. */
  readonly url: string | undefined;
  /** Whether browsers reach the operator listener over TLS: then they send the cookie only there. */
  readonly isSecure: boolean;
  /** Looks up the fingerprint of a session, for every request: an ended session is refused at once. */
  readonly find: (fingerprint: string, isUse: boolean) => Promise<Session | undefined>;
  readonly failures: FailedAuthentications;
};

/**
 * Sessions of the console, in a cookie. Browsers add cookies to the requests of any page, so a session is accepted only
 * from pages of this listener.
 */
export class SessionAuthentication {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  /** With this prefix, browsers accept the cookie only over TLS and from this host, not from another host of its domain. */
  get cookieName(): string {
    return this.#options.isSecure ? "__Host-vx_session" : "vx_session";
  }

  /** A token in the Authorization header has precedence. */
  isCarriedBy(request: Credentials): boolean {
    return request.headers("authorization").length === 0 && cookiesOf(request, this.cookieName).length > 0;
  }

  /** The session of a call. The header that Connect's clients send cannot be sent by forms. */
  async authenticateCall(request: Credentials, isUse: boolean): Promise<Session> {
    this.requireSameOrigin(request);
    if (request.headers("connect-protocol-version").length !== 1)
      throw refused("A session requires the header 'Connect-Protocol-Version' of the Connect protocol.");
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
      throw refused("The session has expired or was ended. Sign in again.");
    }
    failures.addValid(fingerprint);
    return session;
  }

  /** Throws for a request that a page of another origin may have caused. */
  requireSameOrigin(request: Credentials): void {
    requireSameOrigin(request, this.#options.url);
  }

  tokenOf(request: Credentials): string {
    const [token = "", ...others] = cookiesOf(request, this.cookieName);
    if (others.length > 0 || !isWellFormedSessionToken(token)) throw refused("The session is not valid.");
    return token;
  }
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

function refused(message: string): DomainError {
  return new DomainError("invalid_operator_token", { message });
}

/**
 * Throws for a request that a page of another origin may have caused. Pages can change neither header. Browsers omit
 * Sec-Fetch-Site in requests to plain HTTP addresses of other machines, and Origin in some that no script makes.
 */
function requireSameOrigin(request: Credentials, ownUrl: string | undefined): void {
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
