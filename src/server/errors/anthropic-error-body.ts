import { type DomainError, ERRORS, type ErrorStatus } from "../../domain/errors.ts";
import { errorMembers } from "./rest-error-body.ts";

/** Anthropic's API has one type of error for each status. */
const TYPES: Readonly<Record<ErrorStatus, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  405: "invalid_request_error",
  409: "invalid_request_error",
  413: "request_too_large",
  415: "invalid_request_error",
  422: "invalid_request_error",
  429: "rate_limit_error",
  500: "api_error",
  501: "api_error",
  502: "api_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/**
 * The JSON body of an error in Anthropic's API, with the further members of the native one. The details are an object,
 * in which Anthropic's SDKs look for `error_code`.
 */
export function anthropicErrorBody(error: DomainError, requestId: string): string {
  const type = TYPES[ERRORS[error.reason].status];
  const details = JSON.stringify({ ...error.metadata, error_code: error.reason });
  const members = `${errorMembers(error, type)},"details":${details}`;
  return `{"type":"error","error":{${members}},"request_id":${JSON.stringify(requestId)}}`;
}
