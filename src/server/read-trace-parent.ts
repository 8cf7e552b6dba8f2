import { redactKeys } from "../domain/api-key.ts";
import type { TraceParent } from "../domain/trace-parent.ts";
import type { IncomingCall } from "./incoming-call.ts";

/** Version, trace id, id of the caller's span, flags; later versions may append fields. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_STATE_CHARACTERS = 512;
const MAX_STATE_MEMBERS = 32;
/** A key and a value, by the W3C recommendation. The value has neither "," nor "=", and does not end in a space. */
const STATE_MEMBER =
  /^([a-z0-9][a-z0-9_*/@-]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The trace that the caller continues; undefined without exactly one valid traceparent header. */
export function traceParentOf(call: Pick<IncomingCall, "headers">): TraceParent | undefined {
  const values = call.headers("traceparent");
  if (values.length !== 1) return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(values[0] as string) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "00" && more !== undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16), state: traceStateOf(call) };
}

/** The tracestate headers of other tracing systems; empty if they are not valid, too long, or might have a key. */
function traceStateOf(call: Pick<IncomingCall, "headers">): string {
  const state = call.headers("tracestate").join(",");
  if (state === "" || state.length > MAX_STATE_CHARACTERS || redactKeys(state) !== state) return "";
  const members = state
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "");
  const keys = members.map((member) => STATE_MEMBER.exec(member)?.[1]);
  const isValid = members.length <= MAX_STATE_MEMBERS && !keys.includes(undefined);
  return isValid && new Set(keys).size === keys.length ? members.join(",") : "";
}
