import type { HttpHandler } from "../http.ts";

/** Sends "100 Continue" when the body is first read, so that the caller of a refused call sends no body. */
export function continueOnRead(handle: HttpHandler): HttpHandler {
  return (request, response) => {
    const onListener = (event: string | symbol) => {
      if (event !== "data" && event !== "readable") return;
      request.off("newListener", onListener);
      if (!response.headersSent) response.writeContinue();
    };
    request.on("newListener", onListener);
    handle(request, response);
  };
}
