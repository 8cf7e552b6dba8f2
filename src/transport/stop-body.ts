import { constants } from "node:http2";
import type { HttpRequest, HttpResponse } from "./http.ts";

/** Reads nothing more of a body that nobody wants: the connection, or the stream, ends with the answer. */
export function stopBody(request: HttpRequest, response: HttpResponse): void {
  if (request.complete || !request.isPaused()) return;
  if ("stream" in request) {
    response.once("finish", () => request.stream.close(constants.NGHTTP2_NO_ERROR));
  } else if (!response.headersSent) {
    response.setHeader("connection", "close");
  }
}
