import { Code, ConnectError } from "@connectrpc/connect";
import {
  contentTypeStreamJson,
  contentTypeStreamProto,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { DomainError, Reason } from "../../domain/errors.ts";
import { envelope } from "../connect/envelope.ts";
import { encodeMessage, toNodeHeaders } from "../connect/rpc-response.ts";
import { type HttpRequest, type HttpResponse, pathOf, send, sendJson } from "../http.ts";
import { toConnectError } from "./connect-error.ts";
import { errorBody, errorStatus } from "./rest-error-body.ts";

/** "/package.Service/Method": only RPCs have such paths. */
const RPC_PATH = /^\/[A-Za-z_]\w*(?:\.\w+)+\/\w+$/;

const GRPC_TYPE = /^(application\/grpc(?:-web)?)(?:\+(?:proto|json))?(?=$|;|\s)/;

/** gRPC and Connect derive a code from these statuses where an answer has none: 404, 405, 415. */
const CODES_OF_STATUS: Partial<Record<Reason, Code>> = {
  not_found: Code.Unimplemented,
  method_not_allowed: Code.Unknown,
  unsupported_media_type: Code.Unknown,
};

/** Answers a request that no handler took, in the shape of the caller's protocol. */
export function refuse(
  request: HttpRequest,
  response: HttpResponse,
  error: DomainError,
  requestId: string,
): void {
  if (isGrpc(request) || RPC_PATH.test(pathOf(request) ?? "")) refuseRpc(request, response, error);
  else sendJson(response, errorStatus(error), errorBody(error, requestId));
}

/** The same at the path of an RPC. */
export function refuseRpc(request: HttpRequest, response: HttpResponse, error: DomainError): void {
  if (response.headersSent || response.destroyed) return;
  const type = request.headers["content-type"] ?? "";
  if (isGrpc(request)) refuseGrpc(response, type, withCodeOfStatus(error));
  else refuseConnect(response, type, error);
}

function isGrpc(request: HttpRequest): boolean {
  return request.headers["content-type"]?.startsWith("application/grpc") === true;
}

/** Headers alone are a whole answer of gRPC and gRPC-Web. */
function refuseGrpc(response: HttpResponse, type: string, error: ConnectError): void {
  const headers = new Headers();
  setTrailerStatus(headers, error);
  encodeMessage(headers);
  for (const [name, value] of Object.entries(toNodeHeaders(headers))) response.setHeader(name, value);
  response.setHeader("content-type", grpcTypeOf(type));
  response.end();
}

/** The caller's own type where it is known: clients refuse an answer of another. */
function grpcTypeOf(type: string): string {
  const known = GRPC_TYPE.exec(type)?.[0];
  return (
    known ?? (type.startsWith("application/grpc-web") ? "application/grpc-web+proto" : "application/grpc")
  );
}

function refuseConnect(response: HttpResponse, type: string, error: DomainError): void {
  const failure = withCodeOfStatus(error);
  if (type === contentTypeStreamProto || type === contentTypeStreamJson) {
    // The last message of a stream is the only place where its client looks for an error.
    const end = JSON.stringify(endStreamToJson(new Headers(), failure, undefined));
    send(response, 200, type, envelope(endStreamFlag, Buffer.from(end)));
  } else {
    send(response, errorStatus(error), jsonTypeOf(error), Buffer.from(errorToJsonBytes(failure, undefined)));
  }
}

/**
 * A type that belongs to no protocol may come from a gRPC client, which reads no JSON. The conformance suite demands
 * that a body of exactly "application/json" is read.
 */
function jsonTypeOf({ reason }: DomainError): string {
  return reason === "unsupported_media_type" ? "application/json; charset=utf-8" : "application/json";
}

function withCodeOfStatus(error: DomainError): ConnectError {
  const failure = toConnectError(error);
  const code = CODES_OF_STATUS[error.reason];
  if (code === undefined) return failure;
  const refusal = new ConnectError(failure.rawMessage, code);
  refusal.details = failure.details;
  return refusal;
}
