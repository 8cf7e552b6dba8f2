import { Agent } from "node:http";
import { type Client, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { explain } from "./explain.ts";
import { readTarget } from "./target.ts";

export type Admin = Client<typeof AdminService>;

const CALL_TIMEOUT_MS = 60_000;

/** Gives a client of the operator listener, and closes its connection, so that the process can end. */
export async function withAdmin<Result>(use: (admin: Admin) => Promise<Result>): Promise<Result> {
  const { url, token } = readTarget(process.env);
  const agent = new Agent({ keepAlive: true });
  const transport = createConnectTransport({
    httpVersion: "1.1",
    baseUrl: url,
    nodeOptions: { agent },
    interceptors: [bearer(token)],
    defaultTimeoutMs: CALL_TIMEOUT_MS,
  });
  try {
    return await use(createClient(AdminService, transport));
  } catch (error) {
    throw error instanceof ConnectError ? explain(error, url) : error;
  } finally {
    agent.destroy();
  }
}

function bearer(token: string): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}
