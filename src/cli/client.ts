import { X509Certificate } from "node:crypto";
import { Agent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { type Client, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { explain } from "./explain.ts";
import { readTarget, type Target } from "./target.ts";

export type Admin = Client<typeof AdminService>;
export type Console = Client<typeof ConsoleService>;

const CALL_TIMEOUT_MS = 60_000;

/**
 * Calls `use` with clients of the operator listener, then closes the connection so that the process can
 * exit.
 */
export async function withAdmin<Result>(
  use: (admin: Admin, console: Console) => Promise<Result>,
): Promise<Result> {
  const target = readTarget(process.env);
  const { url, token } = target;
  const agent = agentFor(target);
  const transport = createConnectTransport({
    httpVersion: "1.1",
    baseUrl: url,
    nodeOptions: { agent },
    interceptors: [bearer(token)],
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

function bearer(token: string): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}
