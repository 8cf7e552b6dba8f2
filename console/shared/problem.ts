import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/** Why a call failed, for the viewer. */
export type Problem = {
  readonly title: string;
  readonly message: string;
  /** The reason in the error's details, such as "INSUFFICIENT_SCOPE"; empty if the server sent none. */
  readonly reason: string;
  readonly requestId: string;
  /** Seconds after which the server accepts the call again, if it named a time. */
  readonly retryAfterSeconds: number | undefined;
};

const TITLES: Partial<Record<Code, string>> = {
  [Code.Unauthenticated]: "Not signed in",
  [Code.PermissionDenied]: "Not allowed",
  [Code.ResourceExhausted]: "Too many requests",
  [Code.NotFound]: "Not found",
  [Code.InvalidArgument]: "Not accepted",
  [Code.Unavailable]: "The server is not available",
  [Code.DeadlineExceeded]: "The server took too long",
};

/** More exact than the title of the code. */
const REASON_TITLES: Readonly<Record<string, string>> = {
  ACCOUNT_SUSPENDED: "The account is suspended",
  BUDGET_EXCEEDED: "A limit of cost is reached",
  INSUFFICIENT_BALANCE: "The balance is too low",
  INSUFFICIENT_SCOPE: "This key does not have the scope",
  INSUFFICIENT_ROLE: "Your role does not allow this",
  PAYMENT_REVERSED: "A payment was reversed",
  RATE_LIMIT_EXCEEDED: "The rate limit of the key is reached",
};

const UNREACHABLE = "The server cannot be reached";

export function problemOf(error: unknown): Problem {
  if (error instanceof DOMException && error.name !== "AbortError") return fileProblem(error);
  const failure = ConnectError.from(error);
  const { code, metadata, rawMessage } = failure;
  const requestId = metadata.get("x-request-id") ?? "";
  const isUnreachable = requestId === "" && [Code.Unknown, Code.Internal, Code.Unavailable].includes(code);
  const retryAfter = Number(metadata.get("retry-after") ?? Number.NaN);
  const reason = failure.findDetails(ErrorInfoSchema)[0]?.reason ?? "";
  return {
    title: isUnreachable ? UNREACHABLE : (REASON_TITLES[reason] ?? TITLES[code] ?? "Something went wrong"),
    message: isUnreachable ? "Check your connection, then try again." : rawMessage,
    reason,
    requestId,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
  };
}

function fileProblem({ message }: DOMException): Problem {
  return {
    title: "The file cannot be saved",
    message,
    reason: "",
    requestId: "",
    retryAfterSeconds: undefined,
  };
}

/** The call was cancelled because its result is no longer shown. */
export function isCancelled(error: unknown): boolean {
  return ConnectError.from(error).code === Code.Canceled;
}
