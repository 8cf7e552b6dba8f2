import { fingerprintOf } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Operator } from "../../domain/operator.ts";
import type { Identity, Session } from "../../operators/store.ts";
import type { Log } from "../../telemetry/log.ts";
import { type Credentials, credentialsOf } from "../call.ts";
import type { FailedAuthentications } from "../credentials/failed-authentications.ts";
import type { AuthenticateOperator } from "../credentials/operator-authentication.ts";
import { cookiesOf, hostsOf, type SessionAuthentication } from "../credentials/session-authentication.ts";
import { fromRequestError } from "../errors/connect-error.ts";
import { type HttpRequest, type HttpResponse, type ServePath, send, sendJson } from "../http/message.ts";
import { html } from "../pages/html.ts";
import { NOTHING } from "../pages/packed.ts";
import { type OidcClient, SignInError, type SignInFailure } from "./oidc-client.ts";

/** Sign-in with OpenID Connect, of operators or of customers. */
export type SignIn = {
  readonly provider: OidcClient;
  readonly sessions: Pick<SessionAuthentication<unknown>, "cookiesFor">;
  /** The page that is shown after the sign-in, its name in texts, and with what one signs in without the provider. */
  readonly page: { readonly path: string; readonly name: string; readonly credential: string };
  readonly path: string;
  /** A session in the database ends earlier; browsers then send a cookie without effect. */
  readonly sessionSeconds: number;
  /** The URL of the listener, if it is configured; otherwise the Host header names it. */
  readonly url: string | undefined;
  readonly isSecure: boolean;
  readonly newToken: () => string;
  /** Starts a session. Returns the id of the user; undefined if the identity may not sign in. */
  readonly start: (
    identity: Identity,
    fingerprint: string,
    requestId: string,
    credentials: Credentials,
  ) => Promise<string | undefined>;
  readonly failures: FailedAuthentications;
  readonly log: Log;
};

/** Sign-in of operators, whose sessions end with a POST. */
export type OperatorSignIn = SignIn & {
  readonly sessions: SessionAuthentication<Session>;
  readonly end: (fingerprint: string, requestId: string) => Promise<void>;
};

const SIGN_IN_SECONDS = 600;

/** Who the caller is, for the console. A token that is not valid is an error; a missing or ended session is not. */
export function sessionPage(authenticate: AuthenticateOperator, signIn: OperatorSignIn | undefined): ServePath {
  return async (request, response) => {
    const credentials = credentialsOf(request);
    let operator: (Operator & Partial<Session>) | undefined;
    if (signIn?.sessions.isCarriedBy(credentials))
      operator = await signIn.sessions.authenticate(credentials, false).catch(ifNotSignedIn);
    else if (credentials.headers("authorization").length > 0) operator = await authenticate(credentials);
    const { id, name, role, expiresAt } = operator ?? {};
    const body = {
      operator: operator ? { id, name, role } : null,
      session_expires_at: expiresAt?.toISOString() ?? null,
      openid_connect: signIn !== undefined,
    };
    sendJson(response, 200, JSON.stringify(body));
  };
}

function ifNotSignedIn(error: unknown): undefined {
  if (error instanceof DomainError && error.reason === "invalid_operator_token") return undefined;
  throw error;
}

/** The pages that browsers visit while they sign in, for GET. */
export function signInPages(signIn: SignIn): Map<string, ServePath> {
  const guarded =
    (serve: ServePath): ServePath =>
    async (request, response, requestId) => {
      // A HEAD request must not use up the code.
      if (request.method !== "GET") {
        response.setHeader("allow", "GET");
        throw new DomainError("method_not_allowed");
      }
      try {
        await serve(request, response, requestId);
      } catch (thrown) {
        const error = failureOf(thrown);
        if (!error) throw thrown;
        signIn.log.warn({ request_id: requestId, reason: error.failure, detail: error.message }, "sign-in failed");
        setCookie(response, signInCookie(signIn, "", 0));
        failurePage(response, error.failure, signIn.page);
      }
    };
  return new Map([
    [`${signIn.path}/sign-in`, guarded((request, response) => startSignIn(signIn, request, response))],
    [`${signIn.path}/callback`, guarded((request, response, requestId) => finishSignIn(signIn, request, response, requestId))],
  ]);
}

function failureOf(error: unknown): SignInError | undefined {
  if (error instanceof SignInError) return error;
  const { reason, message } = fromRequestError(error);
  const isOutage = reason === "unavailable" || reason === "overloaded";
  return isOutage ? new SignInError("unavailable", message) : undefined;
}

export function signOutPosts(signIn: OperatorSignIn): Map<string, ServePath> {
  return new Map([["/auth/sign-out", (request, response, requestId) => signOut(signIn, request, response, requestId)]]);
}

async function startSignIn(signIn: SignIn, request: HttpRequest, response: HttpResponse): Promise<void> {
  const secret = signIn.newToken();
  const url = await signIn.provider.authorizationUrl(secret, callbackUrl(signIn, credentialsOf(request)).href);
  setCookie(response, signInCookie(signIn, secret, SIGN_IN_SECONDS));
  redirect(response, url.href);
}

async function finishSignIn(signIn: SignIn, request: HttpRequest, response: HttpResponse, requestId: string): Promise<void> {
  const credentials = credentialsOf(request);
  const [secret, ...others] = cookiesOf(credentials, signInCookie(signIn, "", 0).name);
  if (!secret || others.length > 0) throw new SignInError("outdated", "the cookie of the sign-in is missing");
  const flow = fingerprintOf(secret);
  signIn.failures.refuseBlocked(credentials.remoteAddress, flow);
  const url = callbackUrl(signIn, credentials);
  url.search = new URL(request.url ?? "", url).search;
  const token = signIn.newToken();
  try {
    const identity = await signIn.provider.identityOf(url, secret);
    const user = await signIn.start(identity, fingerprintOf(token), requestId, credentials);
    if (user === undefined) throw new SignInError("unknown", "no active operator has this identity");
    signIn.log.info({ request_id: requestId, user }, "signed in");
  } catch (error) {
    if (error instanceof SignInError) signIn.failures.addFailure(credentials.remoteAddress, flow);
    throw error;
  }
  setCookie(response, signInCookie(signIn, "", 0));
  setSession(response, signIn, token, signIn.sessionSeconds);
  redirect(response, signIn.page.path);
}

async function signOut(signIn: OperatorSignIn, request: HttpRequest, response: HttpResponse, requestId: string): Promise<void> {
  const credentials = credentialsOf(request);
  const { sessions } = signIn;
  sessions.requireSameOrigin(credentials);
  if (sessions.isCarriedBy(credentials)) await signIn.end(fingerprintOf(sessions.tokenOf(credentials)), requestId);
  setSession(response, signIn, "", 0);
  sendJson(response, 200, "{}");
}

/** The provider redirects to this URL only if it is registered there, so a forged Host header has no effect. */
function callbackUrl({ url, isSecure, path }: SignIn, credentials: Credentials): URL {
  const [host = ""] = hostsOf(credentials);
  const own = url ?? `${isSecure ? "https" : "http"}://${host}`;
  if (!URL.canParse(own)) throw new SignInError("outdated", "the request has no valid host");
  return new URL(`${path}/callback`, own);
}

/** Binds the response of the provider to the browser. Lax: the response comes from a page of the provider. */
function signInCookie({ isSecure }: SignIn, value: string, maxAgeSeconds: number) {
  const name = isSecure ? "__Host-vx_sign_in" : "vx_sign_in";
  return { name, path: "/", value, sameSite: "Lax", isSecure, maxAgeSeconds } as const;
}

/** An empty token deletes the session. */
export function setSession(
  response: HttpResponse,
  { isSecure, sessions }: Pick<SignIn, "isSecure" | "sessions">,
  token: string,
  maxAgeSeconds: number,
): void {
  for (const cookie of sessions.cookiesFor(token))
    setCookie(response, { ...cookie, sameSite: "Strict", isSecure, maxAgeSeconds });
}

function redirect(response: HttpResponse, location: string): void {
  response.setHeader("location", location);
  response.setHeader("referrer-policy", "no-referrer");
  send(response, 303, "text/plain; charset=utf-8", "");
}

const FAILURE_PAGES: Readonly<Record<SignInFailure, { readonly status: number; readonly text: string }>> = {
  outdated: {
    status: 400,
    text: "This browser did not start this sign-in, or the sign-in took longer than ten minutes. Sign in again.",
  },
  refused: {
    status: 403,
    text: "The identity provider did not confirm the sign-in. Sign in again. If it fails again, the log of the server has the reason.",
  },
  unknown: {
    status: 403,
    text: "This account of the identity provider belongs to no operator. An admin creates operators with the command 'vx operators create --email'; the provider must have verified the address.",
  },
  unreachable: {
    status: 502,
    text: "The identity provider does not respond. Try again later, or sign in with",
  },
  unavailable: {
    status: 503,
    text: "The database does not respond. Sign in again in a few seconds.",
  },
  busy: { status: 503, text: "Too many sign-ins are running. Try again in a few seconds." },
};

function failurePage(response: HttpResponse, failure: SignInFailure, own: SignIn["page"]): void {
  const { status, text } = FAILURE_PAGES[failure];
  const page = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign-in failed</title>
<h1>Sign-in failed</h1>
<p>${failure === "unreachable" ? `${text} ${own.credential}.` : text}</p>
<p><a href="${own.path}">Open the ${own.name}</a></p>
</html>
`;
  response.setHeader("content-security-policy", NOTHING);
  response.setHeader("referrer-policy", "no-referrer");
  send(response, status, "text/html; charset=utf-8", page.source);
}

type Cookie = {
  readonly name: string;
  readonly path: string;
  readonly value: string;
  readonly sameSite: "Strict" | "Lax";
  readonly isSecure: boolean;
  /** 0 deletes the cookie. */
  readonly maxAgeSeconds: number;
};

/** Scripts cannot read the cookie, and it belongs to this host only. */
function setCookie(response: HttpResponse, cookie: Cookie): void {
  const { name, path, value, sameSite, isSecure, maxAgeSeconds } = cookie;
  const secure = isSecure ? "; Secure" : "";
  const text = `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=${sameSite}${secure}`;
  const others = response.getHeader("set-cookie");
  response.setHeader("set-cookie", [...(Array.isArray(others) ? others : []), text]);
}
