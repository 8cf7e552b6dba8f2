import type { Message } from "@bufbuild/protobuf";
import { writerOf } from "../../codec/json/writer.ts";
import { type DomainError, ERRORS } from "../../domain/errors.ts";
import { errorDetails } from "./error-details.ts";

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
export function errorMembers(error: DomainError, type: string): string {
  const head = JSON.stringify({
    code: error.reason,
    type,
    message: error.message,
    param: error.fields[0]?.field ?? null,
    status: ERRORS[error.reason].code,
  });
  return head.slice(1, -1);
}

export function errorStatus(error: DomainError): number {
  return ERRORS[error.reason].status;
}
