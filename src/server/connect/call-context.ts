import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { Call } from "../gate/call.ts";

/** The context key of the Call of an RPC over gRPC, gRPC-Web or Connect. */
export const callKey: ContextKey<Call | undefined> = createContextKey<Call | undefined>(undefined);

export function callOf(values: ContextValues): Call {
  const call = values.get(callKey);
  if (!call) throw new Error("the call did not come through the listener");
  return call;
}
