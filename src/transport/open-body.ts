import { constants } from "node:http2";
import { PassThrough } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import type { HttpRequest } from "./http.ts";

/** More than any client of reflection asks on one stream. */
const MAX_OPEN_BODY_BYTES = 65_536;

/**
 * The body of a call that needs no key. It is taken as it arrives, however slowly the answers are read: what is left
 * unread would wait in the window of its stream, a megabyte for each. A caller who sends more than anyone needs is cut.
 */
export async function* openBody(request: HttpRequest): AsyncGenerator<Uint8Array> {
  const taken = new PassThrough({ highWaterMark: MAX_OPEN_BODY_BYTES });
  let bytes = 0;
  let isTooMuch = false;
  const take = (chunk: Buffer) => {
    bytes += chunk.length;
    isTooMuch = bytes > MAX_OPEN_BODY_BYTES;
    if (isTooMuch) cut(request);
    else taken.write(chunk);
  };
  request.on("data", take);
  request.once("end", () => taken.end());
  request.once("close", () => (request.complete && !isTooMuch ? taken.end() : taken.destroy()));
  try {
    yield* taken as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw new ConnectError("the caller went away", Code.Canceled, undefined, undefined, error);
  } finally {
    request.off("data", take);
  }
}

/** With a code: without one the stream would stay until its answers are read. */
function cut(request: HttpRequest): void {
  if ("stream" in request) request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else request.destroy();
}
