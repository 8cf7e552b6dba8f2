import type { ConnectError } from "@connectrpc/connect";
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  type Help,
  HelpSchema,
  type PreconditionFailure,
  PreconditionFailureSchema,
  type QuotaFailure,
  QuotaFailureSchema,
  type RetryInfo,
  RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.ts";

/** A google.rpc detail; `$typeName` says which one. */
export type ErrorDetail = ErrorInfo | BadRequest | RetryInfo | QuotaFailure | PreconditionFailure | Help;

export function detailsOf(error: ConnectError): ErrorDetail[] {
  return [
    ...error.findDetails(ErrorInfoSchema),
    ...error.findDetails(BadRequestSchema),
    ...error.findDetails(RetryInfoSchema),
    ...error.findDetails(QuotaFailureSchema),
    ...error.findDetails(PreconditionFailureSchema),
    ...error.findDetails(HelpSchema),
  ];
}
