// The same RPC with the same response on a plain connect-node server, without keys, limits, database or log.
// Uses HTTP/2, or HTTP/1.1 with the argument "http1".
import { createServer } from "node:http2";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { serve, serveHttp } from "./serve.ts";

const answer = {
  key: "vx_live_abcd…wxyz",
  keyName: "bench",
  plan: "bench",
  rateLimitRpm: 1_000_000,
  balance: "$10.00",
  balanceMicros: 10_000_000n,
};
const options = { routes: (router: ConnectRouter) => router.service(MeService, { getMe: () => answer }) };
if (process.argv.includes("http1")) serveHttp(connectNodeAdapter(options));
else serve(createServer(connectNodeAdapter(options)));
