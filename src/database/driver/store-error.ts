import { DomainError, isReason } from "../../domain/errors.ts";
import { formatMicros } from "../../domain/money.ts";

/**
 * The SQLSTATE of vx.refuse: the message is the reason, the detail is the text for the caller, with amounts as "{5 micros}", the
 * hint has metadata as JSON.
 */
const REFUSAL = "VX000";

/** The SQLSTATE of vx.raise_lane_moved. */
const LANE_MOVED = "VX001";

/** The cell refused the statement before any write, because another cell owns one of its lanes. */
export class LaneMoved extends DomainError {
  constructor(cause?: unknown) {
    super("unavailable", { cause });
  }
}

/** The SQLSTATE of vx.require_schema. */
const SCHEMA_MOVED = "VX002";

/** The node of a Citus cluster refused the statement before any write, because the schema is on another one. */
export class SchemaMoved extends DomainError {
  constructor(cause?: unknown) {
    super("unavailable", { cause });
  }
}

/** The statement was not sent. */
export class NotSent extends DomainError {
  constructor(cause: unknown) {
    super("unavailable", { cause });
  }
}

/** The database refused the statement and changed nothing: its disk is full, or it is read-only. */
export function isRefusedWrite(error: unknown): boolean {
  return error instanceof DomainError && /^(53100|25006)$/.test(codeOf(error.cause));
}

/**
 * Temporary conditions of PostgreSQL: starting, stopping, out of resources, disconnected, too slow or
 * read-only.
 */
const TRANSIENT = /^(08|53|57P|57014|55P03|40001|40P01|25006|58)/;

/** Error codes of the driver and the operating system for a failed or lost connection. */
const CONNECTION = /^(CONNECT|CONNECTION_|E[A-Z]+(_AGAIN)?$)/;

/** Connection errors that persist: this user may not open the Unix socket. */
const LASTING = /^(EACCES|EPERM)$/;

/** Errors that every connection would get: no server listens, it is starting, or it is read-only. */
const SERVER_ABSENT = /^(ECONNREFUSED|ENOENT|57P03|25006)$/;

export function isServerAbsent(error: unknown): boolean {
  return SERVER_ABSENT.test(codeOf(error instanceof DomainError ? error.cause : error));
}

/**
 * Whether a later attempt to connect may succeed without a change of the settings: the server does not respond, starts, is
 * read-only or has no free connection. With several hosts, any of them suffices.
 */
export function mayPass(error: unknown): boolean {
  const { code, cause, failures } = (error ?? {}) as { code?: unknown; cause?: unknown; failures?: unknown };
  if (Array.isArray(failures)) return failures.some(mayPass);
  if (typeof code === "string") {
    return (TRANSIENT.test(code) || CONNECTION.test(code)) && !LASTING.test(code);
  }
  if (error instanceof DomainError && error.reason === "unavailable" && !isCoded(cause)) return true;
  return cause !== undefined && mayPass(cause);
}

/**
 * Errors of the statement, its data, locks or resources. After any other error the connection is replaced:
 * its server may have become read-only, it may have lost its role or its prepared statements, or its state is
 * unknown.
 */
const STATEMENT = /^(VX00[012]|22|23|40|53|54|P0|57014|55P03)/;

/** Whether the connection can still be used after this error. */
export function keepsSession(error: unknown): boolean {
  return STATEMENT.test(codeOf(error));
}

function isCoded(error: unknown): boolean {
  const { code, failures } = (error ?? {}) as { code?: unknown; failures?: unknown };
  return code !== undefined || failures !== undefined;
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | undefined)?.code);
}

/** Converts any error of a statement to a DomainError. */
export function fromDatabaseError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  const { code, message, detail, hint } = error as {
    code?: unknown;
    message?: string;
    detail?: string;
    hint?: string;
  };
  if (code === REFUSAL && message !== undefined && isReason(message)) return refusal(message, detail, hint);
  if (code === LANE_MOVED) return new LaneMoved(error);
  if (code === SCHEMA_MOVED) return new SchemaMoved(error);
  if (typeof code === "string" && (TRANSIENT.test(code) || CONNECTION.test(code))) {
    return new DomainError("unavailable", { cause: error });
  }
  return new DomainError("internal", { cause: error });
}

function refusal(reason: ConstructorParameters<typeof DomainError>[0], detail = "", hint = "{}"): DomainError {
  const text = detail.replace(/\{(-?\d+) micros\}/g, (_, micros: string) => formatMicros(BigInt(micros)));
  const { field, ...metadata } = JSON.parse(hint) as Record<string, string>;
  if (field !== undefined) return DomainError.ofField(field, text);
  return new DomainError(reason, { message: text || undefined, metadata });
}
