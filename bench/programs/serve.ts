import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo, Server } from "node:net";

/**
 * Serves HTTP/1.1. Connections stay idle between two rounds for longer than Node's default of five seconds.
 */
export function serveHttp(listener: RequestListener): void {
  serve(createServer({ keepAliveTimeout: 60_000 }, listener));
}

/** Prints the address. SIGTERM ends the process. */
export function serve(server: Server): void {
  server.listen(0, "127.0.0.1", () => {
    console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  process.on("SIGTERM", () => process.exit(0));
}

/** Calls `use` with the whole body. */
export function onBody(request: IncomingMessage, use: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => use(Buffer.concat(chunks)));
}
