import { constants } from "node:http2";
import type { HttpRequest, HttpResponse } from "./http.ts";

/** A stream of HTTP/2 ends with its answer, whatever of its body was not wanted. */
export function stopBody(request: HttpRequest, response: HttpResponse): void {
  if (!("stream" in request) || request.complete || !request.isPaused()) return;
  response.once("finish", () => request.stream.close(constants.NGHTTP2_NO_ERROR));
}
