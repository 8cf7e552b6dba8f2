import { constants } from "node:http2";
import type { HttpRequest, HttpResponse } from "./http.ts";

/** Closes an HTTP/2 stream after its response, even if part of the request body is unread. */
export function stopBody(request: HttpRequest, response: HttpResponse): void {
  if (!("stream" in request) || request.complete || !request.isPaused()) return;
  response.once("finish", () => request.stream.close(constants.NGHTTP2_NO_ERROR));
}
