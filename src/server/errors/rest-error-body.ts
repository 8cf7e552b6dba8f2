import type { Message } from "@bufbuild/protobuf";
import { writerOf } from "../../codec/json/writer.ts";
import { type DomainError, ERRORS } from "../../domain/errors.ts";
import { errorDetails } from "./error-details.ts";

/** The JSON body of every error over plain HTTP. */
export function errorBody(error: DomainError, requestId: string): string {
  const { code, type } = ERRORS[error.reason];
  const head = JSON.stringify({
    code: error.reason,
    type,
    message: error.message,
    param: error.fields[0]?.field ?? null,
    status: code,
  });
  const details = errorDetails(error).map(({ desc, value }) => {
    const fields = writerOf(desc)(value as Message).slice(1);
    return `{"@type":"type.googleapis.com/${desc.typeName}",${fields}`;
  });
  return `{"error":${head.slice(0, -1)},"details":[${details.join(",")}],"request_id":${JSON.stringify(requestId)}}}`;
}

export function errorStatus(error: DomainError): number {
  return ERRORS[error.reason].status;
}
