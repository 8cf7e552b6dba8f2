// A node:http server that only returns the bytes of GET /v1/me.
import { serveHttp } from "./serve.ts";

const body = JSON.stringify({
  key: "vx_live_abcd…wxyz",
  key_name: "demo",
  plan: "pro",
  rate_limit_rpm: 600,
  balance: "$10.00",
  balance_micros: 10_000_000,
});
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
serveHttp((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
