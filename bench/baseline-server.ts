// The same RPC with the same answer on a plain connect-node server: no key, no limit, no database, no log. Over HTTP/2,
// or over HTTP/1.1 where the command line says "http1".
import { createServer } from "node:http2";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { MeService } from "../gen/vx/v1/me_pb.js";
import { serve, serveHttp } from "./serve.ts";

const answer = {
  key: "vx_live_abcd…wxyz",
  keyName: "bench",
  plan: "bench",
  rateLimitRpm: 1_000_000,
  balance: "$10.00",
  balanceMicros: 10_000_000n,
};
const options = {
  routes: (router: ConnectRouter) => router.service(MeService, { getMe: () => answer }),
};
if (process.argv.includes("http1")) serveHttp(connectNodeAdapter(options));
else serve(createServer(connectNodeAdapter(options)));
