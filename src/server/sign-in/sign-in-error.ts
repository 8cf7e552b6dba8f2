/**
 * Why a sign-in failed. "outdated": the browser has no sign-in with this response; "refused": the provider refused, or its
 * response is invalid; "unknown": no operator has the identity; "unreachable": the provider does not respond;
 * "unavailable": the database does not respond.
 */
export type SignInFailure = "outdated" | "refused" | "unknown" | "unreachable" | "busy" | "unavailable";

export class SignInError extends Error {
  readonly failure: SignInFailure;

  /** The detail is for the log. */
  constructor(failure: SignInFailure, detail: string) {
    super(detail);
    this.failure = failure;
  }
}
