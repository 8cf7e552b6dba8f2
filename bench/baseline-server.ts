// The same RPC with the same answer on a plain connect-node server: no key, no limit, no database, no log. Over HTTP/2,
// or over HTTP/1.1 where the command line says "http1".
import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { MeService } from "../gen/vx/v1/me_pb.js";

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
const server = process.argv.includes("http1")
  ? createHttp1Server({ keepAliveTimeout: 60_000 }, connectNodeAdapter(options))
  : createHttp2Server(connectNodeAdapter(options));
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("SIGTERM", () => process.exit(0));
