import type { IncomingMessage } from "node:http";
import type { BadRequest } from "./errors/bad-request.ts";
import { headerValues } from "./http.ts";

/**
 * Framing that a proxy may read differently than this server, which allows request smuggling (RFC 9112, 3.2
 * and 6.1). Node's parser refuses conflicting lengths; it accepts these.
 */
export function framingProblem(request: IncomingMessage): BadRequest | undefined {
  if (headerValues(request, "host").length > 1) return "several_hosts";
  const coding = request.headers["transfer-encoding"];
  if (coding === undefined) return undefined;
  const isChunked = coding.toLowerCase() === "chunked" && request.httpVersion === "1.1";
  return isChunked ? undefined : "transfer_encoding";
}
