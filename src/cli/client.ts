import { X509Certificate } from "node:crypto";
import { Agent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { type CallOptions, type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { currency, setCurrency } from "../domain/money.ts";
import { CommandFailure } from "./failure.ts";
import { printError } from "./output.ts";
import { readTarget, type Target } from "./target.ts";

export type Admin = Client<typeof AdminService>;
export type Console = Client<typeof ConsoleService>;

const CALL_TIMEOUT_MS = 60_000;
/** Of calls that read all rows of a range, so that their duration has no useful bound. */
export const NO_TIMEOUT: CallOptions = { timeoutMs: 0 };

/**
 * Calls `use` with clients of the operator listener, then closes the connection so that the process can
 * exit.
 */
export async function withAdmin<Result>(use: (admin: Admin, console: Console) => Promise<Result>): Promise<Result> {
  const target = readTarget();
  const { url, token } = target;
  const agent = agentFor(target);
  const transport = createConnectTransport({
    httpVersion: "1.1",
    baseUrl: url,
    nodeOptions: { agent },
    interceptors: [bearer(token), namesAccounts()],
    defaultTimeoutMs: CALL_TIMEOUT_MS,
  });
  try {
    return await use(createClient(AdminService, transport), createClient(ConsoleService, transport));
  } catch (error) {
    throw error instanceof ConnectError ? explain(error, url) : error;
  } finally {
    agent.destroy();
  }
}

function agentFor({ url, cert }: Target): Agent {
  if (url.startsWith("http:")) return new Agent({ keepAlive: true });
  if (cert === undefined) return new HttpsAgent({ keepAlive: true });
  // Only this certificate is trusted, for any host name: operators connect to the listener by address.
  const { raw } = new X509Certificate(cert);
  return new HttpsAgent({
    keepAlive: true,
    ca: cert,
    allowPartialTrustChain: true,
    checkServerIdentity: (_host, peer) =>
      raw.equals(peer.raw) ? undefined : new Error("its certificate is not the one in VX_ADMIN_TLS_CERT"),
  });
}

/** Authenticates, and takes over the currency of the server. */
function bearer(token: string): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    const response = await next(request);
    setCurrency(response.header.get("x-vx-currency") ?? currency().code);
    return response;
  };
}

/** Prints which account has the name that the command was given: once, unless another one has it later. */
function namesAccounts(): Interceptor {
  let last: string | null = null;
  return (next) => async (request) => {
    const response = await next(request);
    const id = response.header.get("x-vx-account");
    if (id !== null && id !== last) await printError(`The account is ${id}.`);
    last = id ?? last;
    return response;
  };
}

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
function explain(error: ConnectError, url: string): CallFailure {
  const refused = !UNCERTAIN.has(error.code);
  // Every error of this server has this detail.
  if (error.findDetails(ErrorInfoSchema).length > 0) return new CallFailure(withFields(error), refused);
  if (error.code === Code.Canceled) return new CallFailure("the call was cancelled", refused);
  if (error.code === Code.DeadlineExceeded) return new CallFailure(`${url} did not respond in time`, refused);
  const errno = errnoOf(error);
  if (errno !== undefined) {
    return new CallFailure(`cannot connect to ${url} (${errno}). Check that 'vx serve' is running. ${REMEDY}`, refused);
  }
  const reply = error.rawMessage || `"${Code[error.code]}" without a message`;
  return new CallFailure(`${url} is not the operator listener of a vx server (${reply}). ${REMEDY}`, refused);
}

/** Adds the names of the fields if the message does not contain them. */
function withFields(error: ConnectError): string {
  const fields = error.findDetails(BadRequestSchema).flatMap((detail) => detail.fieldViolations.map(({ field }) => field));
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
