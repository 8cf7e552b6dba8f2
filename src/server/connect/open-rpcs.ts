import { constants } from "node:http2";
import { PassThrough } from "node:stream";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { DomainError } from "../../domain/errors.ts";
import { SMALL_BODY_BYTES } from "../../rules/body-limits.ts";
import type { Log } from "../../telemetry/log.ts";
import type { HttpRequest, HttpResponse, ServePath } from "../http/message.ts";
import type { OpenCalls } from "../http/open-calls.ts";
import { RunningCalls } from "../interceptors/deadline.ts";
import { sendRpcRefusal } from "../wire/refusal.ts";
import { abortOnClose, isRpcRefused, setRpcHeaders, universalRequest, webHeaders, writeUniversal } from "./universal.ts";

type OpenRpcOptions = {
  /** Standard services that need no key: health and reflection. */
  readonly openRoutes: (router: ConnectRouter) => void;
  /** Limits the calls to these services. */
  readonly openCalls: OpenCalls;
  /** Aborts the calls that would delay a drain: health watches. */
  readonly drainSignal: AbortSignal;
  readonly log: Log;
};

const requestIdKey = createContextKey("");

/** RPCs without a key. Connect decodes their requests. */
export function openRpcs(options: OpenRpcOptions): Map<string, ServePath> {
  // Anyone may request these responses, so compressing each one is not worth its cost.
  const router = createConnectRouter({
    readMaxBytes: SMALL_BODY_BYTES,
    interceptors: [(next) => (call) => next(call).catch((error: unknown) => logBug(options.log, call, error))],
  });
  options.openRoutes(router);
  const running = new RunningCalls(options.drainSignal);
  return new Map(
    router.handlers.map((handler) => [
      handler.requestPath,
      (request, response, requestId) => {
        setRpcHeaders(response, requestId);
        return serveOpenRpc(options.openCalls, running, handler, request, response, requestId);
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
  requestId: string,
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
    const universal = universalRequest(request, webHeaders(request), body, aborted.signal);
    const contextValues = createContextValues().set(requestIdKey, requestId);
    await writeUniversal(await handler({ ...universal, contextValues }), response);
  } finally {
    running.remove(slot);
  }
}

/** Connect answers such an error as internal. */
function logBug(log: Log, { method, contextValues }: Parameters<ReturnType<Interceptor>>[0], error: unknown): never {
  if (!(error instanceof ConnectError)) {
    const rpc = `${method.parent.typeName}/${method.name}`;
    log.error({ err: error, request_id: contextValues.get(requestIdKey), rpc }, "call failed");
  }
  throw error;
}

/** More than any reflection client sends on one stream. */
const MAX_OPEN_STREAM_BYTES = 65_536;
/** More than the name of any service needs. */
const MAX_OPEN_UNARY_BYTES = 4_096;

/**
 * The body of a call without a key. It is read as it arrives, even if the responses are read slowly: unread
 * data would stay in the flow-control window of its stream, one megabyte each. A body over `maxBytes` ends
 * the call.
 */
async function* openBody(request: HttpRequest, maxBytes: number): AsyncGenerator<Uint8Array> {
  // A request without a body emits no event.
  if (request.readableEnded) return;
  const taken = new PassThrough({ highWaterMark: maxBytes });
  let bytes = 0;
  let isTooMuch = false;
  const take = (chunk: Buffer) => {
    bytes += chunk.length;
    isTooMuch = bytes > maxBytes;
    if (isTooMuch) closeStream(request);
    else taken.write(chunk);
  };
  request.on("data", take);
  request.once("end", () => taken.end());
  request.once("close", () => (request.complete && !isTooMuch ? taken.end() : taken.destroy()));
  try {
    yield* taken as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw new ConnectError("the caller disconnected", Code.Canceled, undefined, undefined, error);
  } finally {
    request.off("data", take);
  }
}

/** With an error code: without one, the stream stays open until its responses are read. */
function closeStream(request: HttpRequest): void {
  if ("stream" in request) request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else request.destroy();
}
