import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Caller } from "../billing/caller.ts";
import type { Operator } from "../domain/operator.ts";
import type { AdmittedKey } from "../store/admit.ts";

/** The properties of a call that an RPC can read, the same in every protocol. */
export type ApiCall = {
  /** The calling key. Methods of the operator API have none. */
  readonly key: AdmittedKey;
  /** The calling operator. Only methods of the operator API have one. */
  readonly operator: Operator;
  /** Throws if the token or the session of the operator is no longer valid. Streams call it regularly. */
  recheckOperator(): Promise<void>;
  /** The name of the method, such as "CreditAccount". */
  readonly method: string;
  readonly requestId: string;
  /** For the log line of the call. */
  recordChange(target: string, amountMicros: bigint | undefined): void;
  /** Aborted when the caller disconnects, its deadline passes, or the server stops. */
  readonly signal: AbortSignal;
  /** Only for methods that are declared as metered. An idempotency key identifies the whole request. */
  readonly caller: <Desc extends DescMessage>(desc: Desc, request: MessageShape<Desc>) => Caller;
};
