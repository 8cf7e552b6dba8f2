import { Code, ConnectError } from "@connectrpc/connect";
import {
  contentTypeStreamJson,
  contentTypeStreamProto,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import type { DomainError, Reason } from "../../domain/errors.ts";
import { toConnectError } from "../errors/connect-error.ts";
import { errorBody, errorStatus } from "../errors/http-error.ts";
import { type HttpRequest, type HttpResponse, isClosed, pathOf, send, sendJson } from "../http/message.ts";
import { grpcStatusOf } from "./grpc.ts";
import { envelope } from "./rpc.ts";

/** "/package.Service/Method": only RPCs have such paths. */
const RPC_PATH = /^\/[A-Za-z_]\w*(?:\.\w+)+\/\w+$/;

const GRPC_TYPE = /^(application\/grpc(?:-web)?)(?:\+(?:proto|json))?(?=$|;|\s)/;

/** The codes that gRPC and Connect clients derive from a response without one: 404, 405, 415. */
const CODES_OF_STATUS: Partial<Record<Reason, Code>> = {
  not_found: Code.Unimplemented,
  method_not_allowed: Code.Unknown,
  unsupported_media_type: Code.Unknown,
};

/** Refuses a request that no handler accepted, in the protocol of the caller. */
export function sendRefusal(request: HttpRequest, response: HttpResponse, error: DomainError, requestId: string): void {
  if (isGrpc(request) || RPC_PATH.test(pathOf(request) ?? "")) sendRpcRefusal(request, response, error);
  else sendJson(response, errorStatus(error), errorBody(error, requestId));
}

/** The same for a request to the path of an RPC. */
export function sendRpcRefusal(request: HttpRequest, response: HttpResponse, error: DomainError): void {
  if (response.headersSent || isClosed(response)) return;
  const type = request.headers["content-type"] ?? "";
  if (isGrpc(request)) sendGrpcRefusal(response, type, withCodeOfStatus(error));
  else sendConnectRefusal(response, type, error);
}

function isGrpc(request: HttpRequest): boolean {
  return request.headers["content-type"]?.startsWith("application/grpc") === true;
}

/** A gRPC or gRPC-Web response may consist of headers only. */
function sendGrpcRefusal(response: HttpResponse, type: string, error: ConnectError): void {
  for (const [name, value] of Object.entries(grpcStatusOf(error))) response.setHeader(name, value);
  response.setHeader("content-type", grpcTypeOf(type));
  response.setHeader("cache-control", "no-store");
  response.end();
}

/** The caller's own content type if it is known: clients reject a response of another type. */
function grpcTypeOf(type: string): string {
  const known = GRPC_TYPE.exec(type)?.[0];
  return known ?? (type.startsWith("application/grpc-web") ? "application/grpc-web+proto" : "application/grpc");
}

function sendConnectRefusal(response: HttpResponse, type: string, error: DomainError): void {
  const failure = withCodeOfStatus(error);
  if (type === contentTypeStreamProto || type === contentTypeStreamJson) {
    // Clients of a Connect stream read errors only from its last message.
    const end = JSON.stringify(endStreamToJson(new Headers(), failure, undefined));
    send(response, 200, type, envelope(endStreamFlag, Buffer.from(end)));
  } else {
    send(response, errorStatus(error), jsonTypeOf(error), Buffer.from(errorToJsonBytes(failure, undefined)));
  }
}

/**
 * An unknown content type may come from a gRPC client, which cannot read JSON. The conformance suite requires
 * clients to read a body of exactly "application/json".
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
