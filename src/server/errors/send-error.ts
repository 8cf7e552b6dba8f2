import { DomainError } from "../../domain/errors.ts";
import { type HttpResponse, sendJson } from "../http.ts";
import { setErrorHeaders } from "./error-headers.ts";
import { errorBody, errorStatus } from "./rest-error-body.ts";

/** Sends a DomainError as the response of a page. Any other error is a bug, and is thrown again. */
export function sendError(response: HttpResponse, error: unknown, requestId: string): void {
  if (!(error instanceof DomainError)) throw error;
  setErrorHeaders(response, error);
  sendJson(response, errorStatus(error), errorBody(error, requestId));
}
