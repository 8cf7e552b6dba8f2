// A node:http server that does nothing but return the bytes of GET /v1/me.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const body = JSON.stringify({
  key: "vx_live_abcd…wxyz",
  key_name: "demo",
  plan: "pro",
  rate_limit_rpm: 600,
  balance: "$10.00",
  balance_micros: 10_000_000,
});
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
const server = createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
// Between two rounds the connections stay idle for longer than the five seconds of the default.
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("SIGTERM", () => process.exit(0));
