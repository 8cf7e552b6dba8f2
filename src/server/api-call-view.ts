import type { ApiCall } from "../api/api-call.ts";
import type { Caller } from "../billing/caller.ts";
import { type Call, callingKey, endReasonOf } from "./gate/call.ts";
import { idempotencyKeyOf } from "./gate/idempotency-key.ts";

/** A call as its RPC sees it. Each value is read on access. */
export class ApiCallView implements ApiCall {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  get key() {
    return callingKey(this.#call);
  }

  get signal() {
    return this.#call.signal;
  }

  caller(): Caller {
    const call = this.#call;
    if (!call.policy.metered) throw new Error(`${call.rpc} is not declared as metered`);
    return {
      method: call.rpc,
      requestId: call.requestId,
      key: callingKey(call),
      idempotencyKey: idempotencyKeyOf(call),
      signal: call.signal,
      endReason: () => endReasonOf(call),
      onModel: (modelId) => {
        call.model = modelId;
      },
      onStart: (generation) => {
        call.generation = generation;
      },
      onReplay: () => call.setResponseHeader("idempotency-replayed", "true"),
    };
  }
}
