import type { ErrorDetail } from "./error-details.ts";

/** The known properties of a failed call. */
export type ErrorProperties = {
  /** The code of gRPC, such as "failed_precondition". */
  readonly code: string;
  /** The reason of the server, one of its table of errors. Undefined if the error is not of the server. */
  readonly reason?: string | undefined;
  /** The `x-request-id` of the response, for questions to the operator of the server. */
  readonly requestId?: string | undefined;
  /** The google.rpc details. */
  readonly details?: readonly ErrorDetail[];
  /** Data of the error, such as the balance in micros. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The headers of the response. */
  readonly headers?: Headers;
  /** The key of the call, if it had one. The same call with the same key is charged once. */
  readonly idempotencyKey?: string | undefined;
  readonly cause?: unknown;
};

/** The limit that refused a call, and what it had counted. Amounts of cost are micros. */
export type LimitDetails = {
  readonly id: string;
  /** The id of its account or key, or the name of its plan. */
  readonly ownerId: string;
  readonly metric: string;
  readonly window: string;
  readonly model: string;
  readonly per: string;
  readonly amount: bigint;
  readonly spent: bigint;
  readonly held: bigint;
  readonly needed: bigint;
  /** Undefined if it does not reset. */
  readonly resetsAt: Date | undefined;
};

/** Every error of a call. */
export class VxError extends Error {
  override readonly name: string = "VxError";
  readonly reason: string | undefined;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly details: readonly ErrorDetail[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly headers: Headers;
  readonly idempotencyKey: string | undefined;

  constructor(message: string, properties: ErrorProperties) {
    super(message, { cause: properties.cause });
    this.code = properties.code;
    this.reason = properties.reason;
    this.requestId = properties.requestId;
    this.details = properties.details ?? [];
    this.metadata = properties.metadata ?? {};
    this.headers = properties.headers ?? new Headers();
    this.idempotencyKey = properties.idempotencyKey;
  }

  /** The fields of the request that are not valid. */
  get fields(): readonly { readonly field: string; readonly description: string }[] {
    return this.details.flatMap((detail) => (detail.$typeName === "google.rpc.BadRequest" ? detail.fieldViolations : []));
  }

  /** The limit that refused the call, if one did. */
  get limit(): LimitDetails | undefined {
    const { limit_id: id, limit_owner: ownerId = "", metric = "", window = "", model = "", per = "" } = this.metadata;
    const { amount = "", spent = "", held = "", needed = "", resets_at: resetsAt } = this.metadata;
    const isComplete = [amount, spent, held, needed].every((text) => /^\d{1,19}$/.test(text));
    if (id === undefined || !isComplete) return undefined;
    return {
      ...{ id, ownerId, metric, window, model, per },
      amount: BigInt(amount),
      spent: BigInt(spent),
      held: BigInt(held),
      needed: BigInt(needed),
      resetsAt: resetsAt === undefined ? undefined : new Date(resetsAt),
    };
  }

  /** When the server says that a retry can succeed, in seconds. */
  get retryAfterSeconds(): number | undefined {
    const text = this.headers.get("retry-after");
    return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
  }
}

/** The request is not valid, or what it names does not exist. */
export class InvalidRequestError extends VxError {
  override readonly name: string = "InvalidRequestError";
}

/** The API key is missing, unknown, revoked or expired. */
export class AuthenticationError extends VxError {
  override readonly name: string = "AuthenticationError";
}

/** The API key or its account may not make the call. */
export class PermissionDeniedError extends VxError {
  override readonly name: string = "PermissionDeniedError";
}

/** The account cannot pay for the call. */
export class BillingError extends VxError {
  override readonly name: string = "BillingError";
}

/** A limit of calls is reached. */
export class RateLimitError extends VxError {
  override readonly name: string = "RateLimitError";
}

/** The server, or a model server behind it, failed. */
export class ServerError extends VxError {
  override readonly name: string = "ServerError";
}

/** There was no complete response: the server was not reachable, or the connection ended. */
export class ConnectionError extends VxError {
  override readonly name: string = "ConnectionError";
}

/** The time limit of the call passed in this program. */
export class TimeoutError extends VxError {
  override readonly name: string = "TimeoutError";
}

/** The signal of the call was aborted. */
export class AbortError extends VxError {
  override readonly name: string = "AbortError";
}
