/** Version, trace id, id of the caller's span, flags; later versions may append fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** The trace id of a W3C traceparent header; empty without exactly one valid header. */
export function traceIdOf(values: readonly string[]): string {
  const [value = ""] = values;
  const [, version, traceId, more] = TRACEPARENT.exec(value) ?? [];
  if (traceId === undefined || values.length !== 1) return "";
  return version === "00" && more !== undefined ? "" : traceId;
}
