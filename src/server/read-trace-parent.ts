import { redactKeys } from "../domain/api-key.ts";
import type { TraceParent } from "../domain/trace-parent.ts";
import type { IncomingCall } from "./incoming-call.ts";

/** Version, trace id, id of the caller's span, flags; later versions may append fields. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_STATE_CHARACTERS = 512;
const STATE = /^[\x20-\x7e\t]*$/;

/** The trace that the caller continues; undefined without exactly one valid traceparent header. */
export function traceParentOf(call: Pick<IncomingCall, "headers">): TraceParent | undefined {
  const values = call.headers("traceparent");
  if (values.length !== 1) return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(values[0] as string) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "00" && more !== undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16), state: traceStateOf(call) };
}

/** The tracestate header, which other tracing systems wrote; empty if it is unusual or might have a key. */
function traceStateOf(call: Pick<IncomingCall, "headers">): string {
  const state = call.headers("tracestate").join(",");
  const isUsual = state.length <= MAX_STATE_CHARACTERS && STATE.test(state) && redactKeys(state) === state;
  return isUsual ? state : "";
}
