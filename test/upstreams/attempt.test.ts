import { expect, test } from "vitest";
import { Breaker, type Pass } from "../../src/upstreams/runner/breaker.ts";
import { Attempt, type Outcome } from "../../src/upstreams/runner/guarded-upstream.ts";
import { RUNNER_LIMITS } from "../../src/upstreams/runner/runner.ts";
import type { UpstreamEvent } from "../../src/upstreams/upstream.ts";
import { NEVER } from "./support.ts";

test("an error while the first piece is recorded ends the attempt once, as cancelled", async () => {
  const problem = new Error("no clock");
  const readings = [
    () => 0,
    () => {
      throw problem;
    },
  ];
  const outcomes: Outcome[] = [];
  const breaker = new Breaker(RUNNER_LIMITS.breaker, { now: () => 0, random: () => 0.5 });
  const attempt = new Attempt({
    events: eventsOf({ kind: "text", text: "Hello" }),
    signal: NEVER,
    pass: breaker.admit("acct_1", false) as Pass,
    breaker,
    now: () => readings.shift()?.() ?? 0,
    onEnd: ({ outcome }) => outcomes.push(outcome),
  });
  await expect(attempt.next()).rejects.toBe(problem);
  expect(outcomes).toEqual(["cancelled"]);
});

async function* eventsOf(...events: UpstreamEvent[]): AsyncGenerator<UpstreamEvent> {
  yield* events;
}
