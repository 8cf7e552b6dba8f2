// The health check of the images: exits with 1 unless /livez of the public listener responds with 200.
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

const { PORT = "8080", VX_HOST = "127.0.0.1", VX_TLS_CERT } = process.env;
const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[VX_HOST] ?? VX_HOST;
// The certificate is that of the public name, not of the loopback address.
const options = { host, port: PORT, path: "/livez", timeout: 3_000, rejectUnauthorized: false };
const request = (VX_TLS_CERT ? requestHttps : requestHttp)(options, ({ statusCode }) => {
  process.exit(statusCode === 200 ? 0 : 1);
});
request.on("timeout", () => request.destroy(new Error("no response")));
request.on("error", ({ message }) => {
  console.error(message);
  process.exit(1);
});
request.end();
