import type { Message } from "@bufbuild/protobuf";
import { ConnectError, type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { BodyShare } from "../../codec/body-budget.ts";
import { DomainError } from "../../domain/errors.ts";
import { toConnectError } from "../errors/connect-error.ts";
import { setErrorHeaders } from "../errors/error-headers.ts";
import type { Admitted } from "../gate/gate.ts";
import type { HttpResponse } from "../http.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";

/** A call that passed the gate and whose request is read. Connect passes it on to the service. */
export type RpcCall = {
  readonly call: IncomingCall;
  readonly admitted: Admitted;
  /** Undefined if Connect decodes the request itself: the query of a GET. */
  readonly message: Message | undefined;
  readonly response: HttpResponse;
  readonly observation: Observation;
  readonly share: BodyShare;
};

/** The context key of the call, or of the error that ends it before its service. */
export const rpcCallKey: ContextKey<RpcCall | ConnectError | undefined> = createContextKey<
  RpcCall | ConnectError | undefined
>(undefined);

/** The call of a service; throws the error that ends the call. */
export function rpcCallOf(values: ContextValues): RpcCall {
  const call = values.get(rpcCallKey);
  if (!call) throw new Error("the call was not created by rpcServer");
  if (call instanceof ConnectError) throw call;
  return call;
}

/** Records a failure and returns the error for the caller. */
export function failRpc(error: unknown, response: HttpResponse, observation: Observation): ConnectError {
  observation.setFailure(error);
  if (error instanceof DomainError && !response.headersSent) setErrorHeaders(response, error);
  return toConnectError(error);
}
