/**
 * Why a sign-in failed. "outdated": the answer belongs to no sign-in of this browser; "refused": the provider said no, or its
 * answer is not valid; "unknown": no operator has the identity.
 */
export type SignInFailure = "outdated" | "refused" | "unknown" | "unreachable" | "busy";

export class SignInError extends Error {
  readonly failure: SignInFailure;

  /** The detail is for the log. */
  constructor(failure: SignInFailure, detail: string) {
    super(detail);
    this.failure = failure;
  }
}
