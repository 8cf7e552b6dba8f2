import { type HttpResponse, send } from "../http.ts";
import { html } from "../pages/html.ts";
import type { SignInFailure } from "./sign-in-error.ts";

const PAGES: Readonly<Record<SignInFailure, { readonly status: number; readonly text: string }>> = {
  outdated: {
    status: 400,
    text: "This browser did not start this sign-in, or the sign-in took longer than ten minutes. Open the console and sign in again.",
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
    text: "The identity provider does not respond. Sign in with the token of an operator, or try again later.",
  },
  unavailable: {
    status: 503,
    text: "The database does not respond. Sign in again in a few seconds.",
  },
  busy: { status: 503, text: "Too many sign-ins are running. Try again in a few seconds." },
};

export function failurePage(response: HttpResponse, failure: SignInFailure): void {
  const { status, text } = PAGES[failure];
  const page = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign-in failed</title>
<h1>Sign-in failed</h1>
<p>${text}</p>
<p><a href="/">Open the console</a></p>
</html>
`;
  response.setHeader(
    "content-security-policy",
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  response.setHeader("referrer-policy", "no-referrer");
  send(response, status, "text/html; charset=utf-8", page.source);
}
