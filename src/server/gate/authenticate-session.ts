import { fingerprintOf } from "../../domain/api-key.ts";
import { DomainError } from "../../domain/errors.ts";
import { isWellFormedSessionToken } from "../../domain/operator-token.ts";
import type { Session } from "../../store/operator-sessions.ts";
import type { Credentials } from "./bearer.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";
import { requireSameOrigin } from "./same-origin.ts";

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
