import { DomainError } from "../domain/errors.ts";
import { createIds } from "../domain/ids.ts";
import { badRequestResponses } from "../server/errors/bad-request.ts";
import { sendRefusal } from "../server/errors/refusal.ts";
import { type HttpHandler, pathOf } from "../server/http.ts";
import { Listener } from "../server/listener.ts";
import { probePages } from "../server/pages/probes.ts";
import { requestIdFrom } from "../server/request-id.ts";
import type { Config } from "./config.ts";

// Only for the ids of requests, which have no time.
const ids = createIds(Date.now);
const pages = probePages({ isReady: () => false, failedCells: () => [], watch: () => () => undefined });

/** Answers probes and refuses calls until the database can be used. */
const handle: HttpHandler = (request, response) => {
  const requestId = requestIdFrom(request.headers["x-request-id"], ids.request);
  response.setHeader("x-request-id", requestId);
  const page = pages.get(pathOf(request) ?? "");
  if (page) void page(request, response, requestId);
  else sendRefusal(request, response, new DomainError("unavailable"), requestId);
};

/** The listeners of both ports while the server waits for its database. The caller opens them. */
export function createWaitingServers({ host, port, tls, adminHost, adminPort, adminTls }: Config) {
  const listenerOf = (at: { host: string; port: number; tls: Config["tls"] }) =>
    new Listener({
      ...at,
      tls: at.tls?.read(),
      handler: handle,
      refusals: badRequestResponses(ids.request),
    });
  return {
    publicServer: listenerOf({ host, port, tls }),
    operatorServer: listenerOf({ host: adminHost, port: adminPort, tls: adminTls }),
  };
}
