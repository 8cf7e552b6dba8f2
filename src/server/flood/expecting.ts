import type { HttpHandler } from "../http.ts";

/** The caller waits to be asked for the body: it is when somebody begins to read it, not when the call is refused. */
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
