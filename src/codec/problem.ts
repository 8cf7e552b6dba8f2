/** The kinds of problems of a request before it is decoded. */
type ProblemKind = "invalid" | "not_found" | "method_not_allowed" | "unsupported_media_type" | "too_large";

export class RequestProblem extends Error {
  readonly kind: ProblemKind;
  /** The field as the caller writes it; empty if the problem concerns no single field. */
  readonly field: string;
  /** The HTTP verbs that the address accepts, for method_not_allowed. */
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

export function invalid(field: string, message: string): RequestProblem {
  return new RequestProblem("invalid", message, { field });
}
