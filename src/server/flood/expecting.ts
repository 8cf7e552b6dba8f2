import type { HttpHandler } from "../http.ts";

/** Sends "100 Continue" when the body is first read, so that the caller of a refused call sends none. */
export function expecting(handle: HttpHandler): HttpHandler {
  return (request, response) => {
    const read = request.read;
    request.read = (size) => {
      request.read = read;
      if (!response.headersSent) response.writeContinue();
      return read.call(request, size);
    };
    handle(request, response);
  };
}
