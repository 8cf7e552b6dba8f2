import { validateRequest } from "../../rules/validate.ts";
import type { Interceptor, ReadCall } from "./interceptor.ts";

/** Checks the request against the rules of the .proto, and before that against those of the vendor's API. */
export function validate(): Interceptor<ReadCall> {
  return (next) => (call) => {
    const { method, message } = call;
    method.check?.(message, call);
    validateRequest(method.input, message);
    return next(call);
  };
}
