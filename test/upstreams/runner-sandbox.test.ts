import { expect, test } from "vitest";
import { RUNNER_LIMITS, Runner } from "../../src/upstreams/runner/runner.ts";
import { SandboxUpstream } from "../../src/upstreams/sandbox/sandbox.ts";
import { modelOf, promptOf } from "../support/samples.ts";
import { callOf } from "./support.ts";

const MODEL = modelOf({ upstreams: [{ kind: "sandbox", delayMs: 0 }] });
const PROMPT = promptOf({ messages: [{ role: "user", content: "[[tokens=8]]" }] });

test("the sandbox runs more concurrent streams than the limit of a model server", async () => {
  const runner = new Runner({
    limits: RUNNER_LIMITS,
    open: sandbox,
    now: () => 0,
    random: () => 0.5,
    sleep: () => Promise.resolve(),
    onReport: () => undefined,
  });
  await runner.use([MODEL]);
  const { signal } = new AbortController();
  const streams = Array.from({ length: 2 * RUNNER_LIMITS.slots.maxRunning }, (_, i) =>
    runner.streamEvents(callOf(MODEL, { prompt: PROMPT, signal, accountId: `acct_${i % 3}` })),
  );
  // All have begun and none has ended.
  const firsts = await Promise.all(streams.map((stream) => stream.next()));
  expect(firsts.every(({ value }) => value?.kind === "text")).toBe(true);
  for (const stream of streams) await stream.return?.();
  await runner.close();
});

function sandbox() {
  return new SandboxUpstream({ settings: { kind: "sandbox", delayMs: 0 }, countPrompt: () => Promise.resolve(1) });
}
