// A proxy that fails as the header `x-fault` of a call says, for tests of retries in any language.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { DomainError, ERRORS, isReason } from "../../src/domain/errors.ts";
import { errorDetails, toConnectError } from "../../src/server/errors/connect-error.ts";

/**
 * The parts of `x-fault`, such as "id=a;times=1;status=503". Calls with the same id are attempts of one call, and the first
 * `times` (1) of them fail.
 */
type Fault = {
  readonly id: string;
  readonly times?: string;
  /** Responds with this status, as a load balancer without a server does. */
  readonly status?: string;
  /** Responds with the error of this reason. */
  readonly reason?: string;
  readonly "retry-after"?: string;
  /** The server makes the call, but its response is lost. */
  readonly lose?: string;
  /** The connection ends after this many bytes of the response. */
  readonly cut?: string;
};

export type FaultProxy = { readonly url: string; stop(): Promise<void> };

export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const attempts = new Map<string, (string | null)[]>();
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? "", target);
    // Tests read the idempotency keys of all attempts here.
    if (url.pathname === "/attempts") {
      outgoing.end(JSON.stringify(attempts.get(url.searchParams.get("id") ?? "") ?? []));
      return;
    }
    const parts = String(incoming.headers["x-fault"] ?? "").split(";");
    const fault = Object.fromEntries(parts.map((part) => part.split("="))) as Fault;
    const keys = attempts.get(fault.id) ?? [];
    keys.push(String(incoming.headers["idempotency-key"] ?? "") || null);
    attempts.set(fault.id, keys);
    const body: Buffer[] = [];
    incoming.on("data", (bytes: Buffer) => body.push(bytes));
    incoming.on("end", () => {
      const isFaulty = keys.length <= Number(fault.times ?? 1);
      pass(incoming, Buffer.concat(body), outgoing, target, isFaulty ? fault : undefined);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function pass(incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse, target: string, fault: Fault | undefined): void {
  if (fault?.["retry-after"]) outgoing.setHeader("retry-after", fault["retry-after"]);
  if (fault?.status) {
    outgoing.writeHead(Number(fault.status), { "content-type": "text/html" }).end("<h1>no server</h1>");
    return;
  }
  if (fault?.reason) {
    respondWithReason(incoming, outgoing, fault.reason);
    return;
  }
  const { method, headers, url } = incoming;
  const upstream = request(new URL(url ?? "", target), { method, headers }, (response) => {
    if (!fault?.lose) outgoing.writeHead(response.statusCode ?? 0, response.headers);
    let remaining = Number(fault?.cut ?? Number.POSITIVE_INFINITY);
    response.on("data", (bytes: Buffer) => {
      if (fault?.lose || outgoing.destroyed) return;
      outgoing.write(bytes.subarray(0, remaining), () => {
        if (remaining <= 0) outgoing.destroy();
      });
      remaining = Math.max(0, remaining - bytes.length);
    });
    response.on("end", () => (fault?.lose ? outgoing.destroy() : outgoing.end()));
    response.on("error", () => outgoing.destroy());
  });
  upstream.on("error", () => outgoing.destroy());
  outgoing.on("close", () => upstream.destroy());
  upstream.end(body);
}

function respondWithReason(incoming: IncomingMessage, outgoing: ServerResponse, reason: string): void {
  if (!isReason(reason)) throw new Error(`no reason ${reason}`);
  const error = new DomainError(reason);
  const { code } = toConnectError(error);
  const row: { code: string; shouldRetry?: boolean | undefined } = ERRORS[reason];
  if (row.shouldRetry !== undefined) outgoing.setHeader("x-should-retry", String(row.shouldRetry));
  outgoing.setHeader("x-request-id", "of-the-proxy");
  const details = errorDetails(error).map(({ desc, value }) => ({
    type: desc.typeName,
    value: Buffer.from(toBinary(desc, value)).toString("base64"),
  }));
  const wireError = { code: row.code.toLowerCase(), message: error.message, details };
  const contentType = incoming.headers["content-type"] ?? "";
  if (contentType.startsWith("application/connect+")) {
    // A stream has its error in its last message, which has the flag 2.
    outgoing.writeHead(200, { "content-type": contentType });
    outgoing.end(encodeEnvelope(2, Buffer.from(JSON.stringify({ error: wireError }))));
  } else {
    outgoing.writeHead(codeToHttpStatus(code), { "content-type": "application/json" });
    outgoing.end(JSON.stringify(wireError));
  }
}
