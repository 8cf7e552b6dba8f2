import type { Client } from "./client.ts";
import type { Entry, History } from "./history.ts";
import type { PlannedCall } from "./plan.ts";
import type { Tenants } from "./tenants.ts";

/** Maximum number of calls in flight. Further calls are dropped and counted. */
const MAX_IN_FLIGHT = 4_000;
const LATE_MS = 50;

export type LoadOptions = {
  readonly client: Client;
  readonly tenants: Tenants;
  readonly history: History;
  /** Called as soon as a call has ended. */
  readonly onEnded: (entry: Entry) => void;
};

/**
 * Sends every call at its planned time, independent of earlier calls: a server that stalls does not slow the
 * callers down, and their waiting time is part of the figures. Resolves when the last call has ended.
 */
export async function runLoad(calls: readonly PlannedCall[], options: LoadOptions): Promise<void> {
  const { client, tenants, history, onEnded } = options;
  const startedAt = performance.now();
  const running = new Set<Promise<void>>();
  let next = 0;
  const sendDue = () => {
    for (let call = calls[next]; call && startedAt + call.atMs <= performance.now(); call = calls[++next]) {
      const plannedAt = startedAt + call.atMs;
      if (running.size >= MAX_IN_FLIGHT) {
        history.dropped++;
        continue;
      }
      if (performance.now() - plannedAt > LATE_MS) history.late++;
      const sent = client.send(call, tenants, plannedAt).then((entry) => {
        running.delete(sent);
        history.add(entry);
        onEnded(entry);
      });
      running.add(sent);
    }
  };
  await new Promise<void>((resolve) => {
    const tick = () => {
      sendDue();
      const call = calls[next];
      if (!call) resolve();
      else setTimeout(tick, Math.max(1, startedAt + call.atMs - performance.now()));
    };
    tick();
  });
  await Promise.all(running);
}
