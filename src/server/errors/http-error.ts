import type { Message } from "@bufbuild/protobuf";
import { writerOf } from "../../codec/json/writer.ts";
import { type DomainError, ERRORS, type ErrorStatus } from "../../domain/errors.ts";
import { type HeaderSink, type HttpResponse, sendJson } from "../http/message.ts";
import { errorDetails, fromRequestError } from "./connect-error.ts";

/** The JSON body of an error over plain HTTP, in the native API and in OpenAI's. */
export function errorBody(error: DomainError, requestId: string): string {
  return `{"error":${errorObject(error, requestId)}}`;
}

/** The value of `error` in that body. */
export function errorObject(error: DomainError, requestId: string): string {
  const details = errorDetails(error).map(({ desc, value }) => {
    const fields = writerOf(desc)(value as Message).slice(1);
    return `{"@type":"type.googleapis.com/${desc.typeName}",${fields}`;
  });
  const members = errorMembers(error, ERRORS[error.reason].type);
  return `{${members},"details":[${details.join(",")}],"request_id":${JSON.stringify(requestId)}}`;
}

/** The members of an error that are the same in every API, as JSON without the braces. */
function errorMembers(error: DomainError, type: string): string {
  const head = JSON.stringify({
    code: error.reason,
    type,
    message: error.message,
    param: error.fields[0]?.field ?? null,
    status: ERRORS[error.reason].code,
  });
  return head.slice(1, -1) + fundsOf(error);
}

/** Every 402 also has its amounts in the error itself, as numbers. */
function fundsOf({ reason, metadata }: DomainError): string {
  if (ERRORS[reason].status !== 402) return "";
  const amounts = Object.entries(metadata).filter(([name]) => name.endsWith("_micros"));
  const { top_up_url: topUpUrl } = metadata;
  const members = amounts.map(([name, value]) => `,${JSON.stringify(name)}:${value}`);
  return members.join("") + (topUpUrl === undefined ? "" : `,"top_up_url":${JSON.stringify(topUpUrl)}`);
}

export function errorStatus(error: DomainError): number {
  return ERRORS[error.reason].status;
}

/** The types of Anthropic's API that differ from those of OpenAI's, by status. */
const ANTHROPIC_TYPES: Partial<Record<ErrorStatus, string>> = {
  404: "not_found_error",
  413: "request_too_large",
  503: "overloaded_error",
  504: "timeout_error",
};

/**
 * The JSON body of an error in Anthropic's API, with the further members of the native one. The details are an object,
 * in which Anthropic's SDKs look for `error_code`.
 */
export function anthropicErrorBody(error: DomainError, requestId: string): string {
  const { status, type: usual } = ERRORS[error.reason];
  const type = ANTHROPIC_TYPES[status] ?? usual;
  const details = JSON.stringify({ ...error.metadata, error_code: error.reason });
  const members = `${errorMembers(error, type)},"details":${details}`;
  return `{"type":"error","error":{${members}},"request_id":${JSON.stringify(requestId)}}`;
}

/** Sends an error as the response of a page. A bug is thrown again: the handler of the listener logs it before it answers. */
export function sendError(response: HttpResponse, error: unknown, requestId: string): void {
  const known = fromRequestError(error);
  if (known.reason === "internal") throw error;
  setErrorHeaders(response, known);
  sendJson(response, errorStatus(known), errorBody(known, requestId));
}

/** The headers of an error: how to authenticate, whether to retry, and when. */
export function setErrorHeaders(response: HeaderSink, error: DomainError): void {
  const { shouldRetry } = error;
  const { status } = ERRORS[error.reason];
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  if (error.retryAfterSeconds !== undefined) response.setHeader("retry-after", String(error.retryAfterSeconds));
  if (shouldRetry !== undefined) response.setHeader("x-should-retry", String(shouldRetry));
}
