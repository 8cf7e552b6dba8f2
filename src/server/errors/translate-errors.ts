import type { ConnectError, Interceptor } from "@connectrpc/connect";
import { DomainError } from "../../domain/errors.ts";
import { callOf } from "../connect/call-context.ts";
import type { Call } from "../gate/call.ts";
import { toConnectError } from "./connect-error.ts";
import { errorHeaders } from "./error-headers.ts";

/** Records a failure on the call and sends the caller only what the error table allows. */
export const translateErrors: Interceptor = (next) => async (request) => {
  const call = callOf(request.contextValues);
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: translated(response.message, call) } : response;
  } catch (error) {
    throw translate(error, call);
  }
};

async function* translated<Item>(items: AsyncIterable<Item>, call: Call): AsyncIterable<Item> {
  try {
    yield* items;
  } catch (error) {
    throw translate(error, call);
  }
}

/** Records the failure and its headers on the call. */
export function translate(error: unknown, call: Call): ConnectError {
  call.failure = error;
  if (error instanceof DomainError) {
    for (const [name, value] of errorHeaders(error)) call.setResponseHeader(name, value);
  }
  return toConnectError(error);
}
