// The same RPC with the same answer on a plain connect-node server: no key, no limit, no database, no log.
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
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
const server = createServer(
  connectNodeAdapter({ routes: (router) => router.service(MeService, { getMe: () => answer }) }),
);
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("SIGTERM", () => process.exit(0));
