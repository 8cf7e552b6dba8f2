import { constants } from "node:http2";
import { PassThrough } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import type { HttpRequest } from "../http.ts";

/** More than any reflection client sends on one stream. */
export const MAX_OPEN_STREAM_BYTES = 65_536;
/** More than the name of any service needs. */
export const MAX_OPEN_UNARY_BYTES = 4_096;

/**
 * The body of a call without a key. It is read as it arrives, even if the responses are read slowly: unread
 * data would stay in the flow-control window of its stream, one megabyte each. A body over `maxBytes` ends
 * the call.
 */
export async function* openBody(request: HttpRequest, maxBytes: number): AsyncGenerator<Uint8Array> {
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
