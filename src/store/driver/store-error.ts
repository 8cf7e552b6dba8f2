import { DomainError, isReason } from "../../domain/errors.ts";

/** The SQLSTATE of vx.refuse: message is the reason, detail the text for the caller, hint the facts as JSON. */
const REFUSAL = "VX000";

/** What PostgreSQL says when it is starting, stopping, full, gone or too slow, rather than wrong. */
const PASSING = /^(08|53|57P|57014|55P03|40001|40P01|25006|58)/;

/** Codes of the driver and of the operating system for a connection that is not there. */
const CONNECTION = /^(CONNECT|CONNECTION_|E[A-Z]+$)/;

/** Errors that every other connection would get as well: nothing listens there, or nothing can be written. */
const ABSENT = /^(ECONNREFUSED|ENOENT|57P03|25006)$/;

export function isAbsence(error: unknown): boolean {
  return ABSENT.test(codeOf(error instanceof DomainError ? error.cause : error));
}

/**
 * Errors of the statement or its data, of locks and of resources. After any other one the connection is replaced: it
 * may be on a server that became read-only, have lost its role or its prepared statements, or be in no known state.
 */
const STATEMENT = /^(VX000|22|23|40|53|54|P0|57014|55P03)/;

/** Whether the connection is as good as a new one after this error. */
export function keepsSession(error: unknown): boolean {
  return STATEMENT.test(codeOf(error));
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | undefined)?.code);
}

/** Turns whatever a statement failed with into a DomainError. */
export function toDomainError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  const { code, message, detail, hint } = error as {
    code?: unknown;
    message?: string;
    detail?: string;
    hint?: string;
  };
  if (code === REFUSAL && message !== undefined && isReason(message)) return refusal(message, detail, hint);
  if (typeof code === "string" && (PASSING.test(code) || CONNECTION.test(code))) {
    return new DomainError("unavailable", { cause: error });
  }
  return new DomainError("internal", { cause: error });
}

function refusal(
  reason: ConstructorParameters<typeof DomainError>[0],
  detail?: string,
  hint?: string,
): DomainError {
  const { field, ...metadata } = JSON.parse(hint ?? "{}") as Record<string, string>;
  if (field !== undefined) return DomainError.ofField(field, detail ?? "");
  return new DomainError(reason, { message: detail || undefined, metadata });
}
