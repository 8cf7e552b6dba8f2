// A model server that keeps each request for a while and then fails. Prints its port. It is a process of its own, so that reading
// requests does not delay the caller that is measured.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const KEEPS_MS = 500;

const server = createServer((request, response) => {
  request.resume().once("end", () => setTimeout(() => response.writeHead(500).end(), KEEPS_MS));
  request.on("error", () => undefined);
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
