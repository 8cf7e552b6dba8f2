import { Code, ConnectError } from "@connectrpc/connect";
import { type BodySource, CallerDisconnected } from "../../codec/body.ts";
import type { BodyBudget } from "../../codec/body-budget.ts";
import { inTurnsOf } from "../../domain/next-turn.ts";
import { validateRequest } from "../../rules/validate.ts";
import { fromRequestError } from "../errors/connect-error.ts";
import type { Admitted, Gate } from "../gate/gate.ts";
import { passGate } from "../gate/pass-gate.ts";
import type { RequestHead } from "../http/message.ts";
import { HttpCall, type IncomingCall } from "../incoming-call.ts";
import type { Observation, Observe } from "../observation.ts";
import { RunningCalls } from "../service-call.ts";
import type { DirectForm } from "./direct-form.ts";
import { bytesOf, type DirectMethod } from "./direct-method.ts";
import { readRpcRequest } from "./read-rpc-request.ts";
import type { RpcMethod } from "./rpc-method.ts";
import { COMPRESSED, type RpcResponse, type RpcResponseOptions } from "./rpc-response.ts";
import { HEAD_BYTES } from "./wire.ts";

export type DirectOptions = {
  readonly gate: Gate;
  readonly budget: BodyBudget;
  /** Aborts the calls that are still running at the end of a drain. */
  readonly shutdownSignal: AbortSignal;
  readonly observe: Observe;
};

export type DirectRoute = RpcMethod & DirectMethod;

type DirectRequest = RequestHead & BodySource;

/** Serves one call. */
export type ServeDirect = (
  route: DirectRoute,
  form: DirectForm,
  request: DirectRequest,
  requestId: string,
  openResponse: (options: RpcResponseOptions) => RpcResponse,
) => Promise<void>;

export function directServer(options: DirectOptions): ServeDirect {
  const running = new RunningCalls(options.shutdownSignal);
  return async (route, form, request, requestId, openResponse) => {
    const maxBodyBytes = route.maxBodyBytes + (form.isEnveloped ? HEAD_BYTES : 0);
    const call = new HttpCall(form.protocol, route.policy, maxBodyBytes, request, requestId);
    const observation = options.observe(call, route.rpc);
    const response = openResponse({ form, request, requestId, startedAt: observation.startedAt });
    const slot = running.insert(response);
    let code: Code | 0 = 0;
    try {
      await serveCall(options, route, form, call, request, response, observation);
    } catch (error) {
      code = fail(error, response, observation);
    } finally {
      response.stopDeadline();
      running.remove(slot);
      observation.end(code);
    }
  };
}

/** Sends an error, once; returns the code for the log if the failure itself does not have it. */
function fail(error: unknown, response: RpcResponse, observation: Observation): Code | 0 {
  if (response.abortError) {
    observation.setFailure(response.abortError);
    return 0;
  }
  if (error instanceof CallerDisconnected) return Code.Canceled;
  const known = error instanceof ConnectError ? error : fromRequestError(error);
  observation.setFailure(known);
  response.sendError(known);
  return 0;
}

/** Gate, read, validate, invoke, respond. Throws what the caller gets as an error. */
async function serveCall(
  options: DirectOptions,
  route: DirectRoute,
  form: DirectForm,
  call: IncomingCall,
  request: DirectRequest,
  response: RpcResponse,
  observation: Observation,
): Promise<void> {
  const admitted = await passGate(options.gate, call, response, observation, response.remainingMs());
  await inTurnsOf(admitted.key?.accountId, () =>
    serveAdmitted(options, route, form, call, request, response, observation, admitted),
  );
}

async function serveAdmitted(
  options: DirectOptions,
  route: DirectRoute,
  form: DirectForm,
  call: IncomingCall,
  request: DirectRequest,
  response: RpcResponse,
  observation: Observation,
  admitted: Admitted,
): Promise<void> {
  const share = options.budget.openShare(admitted.key?.accountId);
  try {
    const limits = { maxBytes: call.maxBodyBytes, share };
    const message = await readRpcRequest(route, form, request, limits, response.remainingMs());
    validateRequest(route.method.input, message);
    const result = route.invoke(message, { request, call, admitted, response, observation, share });
    if (route.method.methodKind === "unary") await respondOnce(route, form, result, response);
    else await respondWithStream(route, form, result, response);
  } finally {
    share.release();
  }
}

async function respondOnce(
  route: DirectRoute,
  { isJson }: DirectForm,
  result: unknown,
  response: RpcResponse,
): Promise<void> {
  const bytes = bytesOf(route, isJson, await result);
  const compressing = response.compress(bytes);
  const content = compressing === undefined ? bytes : await compressing;
  if (response.isDone) throw new CallerDisconnected();
  response.sendOnly(content, compressing === undefined ? 0 : COMPRESSED);
}

async function respondWithStream(
  route: DirectRoute,
  { isJson }: DirectForm,
  results: unknown,
  response: RpcResponse,
): Promise<void> {
  for await (const result of results as AsyncIterable<unknown>) {
    const bytes = bytesOf(route, isJson, result);
    const compressing = response.compress(bytes);
    const content = compressing === undefined ? bytes : await compressing;
    if (response.isDone) throw new CallerDisconnected();
    const isWritable = response.sendMessage(content, compressing === undefined ? 0 : COMPRESSED);
    if (!isWritable) await response.untilWritable();
  }
  if (response.isDone) throw new CallerDisconnected();
  response.end();
}
