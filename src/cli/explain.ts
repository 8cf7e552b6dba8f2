import { Code, type ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { CommandFailure } from "./failure.ts";

/** A failed call. `refused` is true if the server rejected it, false if the outcome is unknown. */
export class CallFailure extends CommandFailure {
  readonly refused: boolean;

  constructor(message: string, refused: boolean) {
    super(message);
    this.refused = refused;
  }
}

const UNCERTAIN: ReadonlySet<Code> = new Set([
  Code.Canceled,
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Aborted,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

const REMEDY = "Set VX_ADMIN_HOST and VX_ADMIN_PORT to the address of the operator listener";

/** Converts the error to a one-line message. */
export function explain(error: ConnectError, url: string): CallFailure {
  const refused = !UNCERTAIN.has(error.code);
  // Every error of this server has this detail.
  if (error.findDetails(ErrorInfoSchema).length > 0) return new CallFailure(withFields(error), refused);
  if (error.code === Code.Canceled) return new CallFailure("the call was cancelled", refused);
  if (error.code === Code.DeadlineExceeded) return new CallFailure(`${url} did not respond in time`, refused);
  const errno = errnoOf(error);
  if (errno !== undefined) {
    return new CallFailure(
      `cannot connect to ${url} (${errno}). Check that 'vx serve' is running. ${REMEDY}`,
      refused,
    );
  }
  const reply = error.rawMessage || `"${Code[error.code]}" without a message`;
  return new CallFailure(`${url} is not the operator listener of a vx server (${reply}). ${REMEDY}`, refused);
}

/** Adds the names of the fields if the message does not contain them. */
function withFields(error: ConnectError): string {
  const fields = error
    .findDetails(BadRequestSchema)
    .flatMap((detail) => detail.fieldViolations.map(({ field }) => field));
  const unnamed = fields.filter((field) => field !== "" && !error.rawMessage.includes(field));
  return unnamed.length === 0 ? error.rawMessage : `${error.rawMessage} (${unnamed.join(", ")})`;
}

/** The code of the underlying network error. */
function errnoOf(error: Error): string | undefined {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && typeof cause.code === "string" && /^E(?!RR_)/.test(cause.code)) return cause.code;
  }
  return undefined;
}
