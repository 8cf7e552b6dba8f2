/** The kinds of problems of a request before it is decoded. */
type ProblemKind = "invalid" | "not_found" | "method_not_allowed" | "unsupported_media_type" | "too_large";

export class RequestProblem extends Error {
  readonly kind: ProblemKind;
  /** The field as the caller writes it; empty if the problem concerns no single field. */
  readonly field: string;

  constructor(kind: ProblemKind, message: string, field = "") {
    super(message);
    this.kind = kind;
    this.field = field;
  }
}

export function invalid(field: string, message: string): RequestProblem {
  return new RequestProblem("invalid", message, field);
}
