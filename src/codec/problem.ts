/** What can be wrong with a request before it becomes a message. */
type ProblemKind = "invalid" | "not_found" | "method_not_allowed" | "unsupported_media_type" | "too_large";

export class RestProblem extends Error {
  readonly kind: ProblemKind;
  /** The field, as the caller would write it; empty if it is none in particular. */
  readonly field: string;
  /** HTTP verbs the address does take, for method_not_allowed. */
  readonly allowed: readonly string[];

  constructor(
    kind: ProblemKind,
    message: string,
    options: { field?: string; allowed?: readonly string[] } = {},
  ) {
    super(message);
    this.kind = kind;
    this.field = options.field ?? "";
    this.allowed = options.allowed ?? [];
  }
}

export function invalid(field: string, message: string): RestProblem {
  return new RestProblem("invalid", message, { field });
}
