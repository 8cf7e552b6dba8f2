import type { Interceptor, ReadCall } from "./interceptor.ts";

/** Runs the method, unless an earlier stage has the result of a generation, and sends the response. */
export function invoke(): Interceptor<ReadCall> {
  return () => async (call) => {
    const { method, message } = call;
    const result = typeof method.invoke === "function" ? method.invoke(message as never, call) : call.result;
    if (method.isStream) await call.respondWithStream(result as AsyncIterable<unknown>);
    else {
      const sending = call.respond(await result);
      if (sending !== undefined) await sending;
    }
  };
}
