import type { Caller } from "../billing/caller.ts";
import type { AdmittedKey } from "../store/admit.ts";

/** What an RPC knows of its call, whatever the protocol. */
export type ApiCall = {
  /** The calling key. Methods of the operator API have none. */
  readonly key: AdmittedKey;
  /** Aborted when the caller leaves, its deadline passes, or the server stops. */
  readonly signal: AbortSignal;
  /** For methods that are declared as metered. */
  readonly caller: () => Caller;
};
