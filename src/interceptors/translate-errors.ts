import type { Interceptor } from "@connectrpc/connect";
import type { Call } from "../gate/call.ts";
import { callOf } from "./call-context.ts";
import { toConnectError } from "./connect-error.ts";

/** Notes a failure on the call and tells the caller no more of it than the table of errors allows. */
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

function translate(error: unknown, call: Call) {
  call.failure = error;
  return toConnectError(error);
}
