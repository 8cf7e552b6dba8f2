import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { DomainError } from "../../domain/errors.ts";
import { SMALL_BODY_BYTES } from "../../rules/body-limits.ts";
import { sendRpcRefusal } from "../errors/refusal.ts";
import { MAX_OPEN_STREAM_BYTES, MAX_OPEN_UNARY_BYTES, openBody } from "../flood/open-body.ts";
import type { OpenCalls } from "../flood/open-calls.ts";
import type { HttpRequest, HttpResponse, ServePath } from "../http.ts";
import { RunningCalls } from "../running-calls.ts";
import { respondRpc } from "./respond-rpc.ts";
import { rpcFormOf } from "./rpc-form-of.ts";
import { isRpcRefused } from "./rpc-routes.ts";
import { abortOnClose, universalRequest, webHeaders } from "./universal-request.ts";

export type OpenRpcOptions = {
  /** Standard services that need no key: health and reflection. */
  readonly openRoutes: (router: ConnectRouter) => void;
  /** Limits the calls to these services. */
  readonly openCalls: OpenCalls;
  /** Aborts the calls that would delay a drain: health watches. */
  readonly drainSignal: AbortSignal;
};

/** RPCs without a key. Connect decodes their requests. */
export function openRpcServer(options: OpenRpcOptions): Map<string, ServePath> {
  // Anyone may request these responses, so compressing each one is not worth its cost.
  const router = createConnectRouter({ readMaxBytes: SMALL_BODY_BYTES });
  options.openRoutes(router);
  const running = new RunningCalls(options.drainSignal);
  return new Map(
    router.handlers.map((handler) => [
      handler.requestPath,
      (request, response, requestId) => {
        response.setHeader("x-request-id", requestId);
        return serveOpenRpc(options.openCalls, running, handler, request, response);
      },
    ]),
  );
}

async function serveOpenRpc(
  openCalls: OpenCalls,
  running: RunningCalls,
  handler: UniversalHandler,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  if (isRpcRefused(handler, request, response)) return;
  const isStream = handler.method.methodKind !== "unary";
  if (!openCalls.admit(isStream, request, response)) {
    sendRpcRefusal(request, response, new DomainError("overloaded"));
    return;
  }
  const aborted = abortOnClose(response);
  const slot = running.insert(aborted);
  try {
    const body = openBody(request, isStream ? MAX_OPEN_STREAM_BYTES : MAX_OPEN_UNARY_BYTES);
    const universal = universalRequest(request, webHeaders(request, 0), body, aborted.signal);
    await respondRpc(await handler(universal), rpcFormOf(request).protocol, request, response, undefined);
  } finally {
    running.remove(slot);
  }
}
