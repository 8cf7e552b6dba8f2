/** What a log line tells about a call, without what differs between equal calls. */
const COMPARED = ["level", "msg", "rpc", "protocol", "code", "status", "model", "reason"];
const CHARGES = ["input_tokens", "output_tokens", "cost_micros"];

/** How often each call was logged. The charge of a call with a deadline depends on how far it came. */
export function loggedCalls(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
    const isCompared = fields.protocol !== "rest" && String(fields.rpc ?? "vx.admin").startsWith("vx.admin") === false;
    if (!isCompared) continue;
    const names = fields.reason === "deadline_exceeded" ? COMPARED : [...COMPARED, ...CHARGES];
    const call = JSON.stringify(names.map((name) => fields[name]));
    counts.set(call, (counts.get(call) ?? 0) + 1);
  }
  return counts;
}
