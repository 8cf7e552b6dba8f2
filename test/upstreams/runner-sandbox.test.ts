import { expect, test } from "vitest";
import type { Model } from "../../src/domain/model.ts";
import { Runner } from "../../src/upstreams/runner/runner.ts";
import { RUNNER_LIMITS } from "../../src/upstreams/runner/runner-limits.ts";
import { SandboxUpstream } from "../../src/upstreams/sandbox/sandbox.ts";
import { callOf } from "./support.ts";

const MODEL: Model = {
  id: "m",
  ownedBy: "vx",
  createdSeconds: 0,
  contextWindow: 8_192,
  maxOutputTokens: 4_096,
  defaultOutputTokens: 4_096,
  promptOverheadTokens: { base: 0, perMessage: 0 },
  inputMicrosPerMillionTokens: 1n,
  outputMicrosPerMillionTokens: 1n,
  upstreams: [{ kind: "sandbox", delayMs: 0 }],
};
const PROMPT = {
  messages: [{ role: "user" as const, content: "[[tokens=8]]" }],
  maxTokens: 100,
  temperature: undefined,
  stop: [],
};

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
    runner.run(callOf(MODEL, { prompt: PROMPT, signal, accountId: `acct_${i % 3}` })),
  );
  // All have begun and none has ended.
  const firsts = await Promise.all(streams.map((stream) => stream.next()));
  expect(firsts.every(({ value }) => value?.kind === "delta")).toBe(true);
  for (const stream of streams) await stream.return?.();
  await runner.close();
});

function sandbox() {
  return new SandboxUpstream({
    settings: { kind: "sandbox", delayMs: 0 },
    countPrompt: () => Promise.resolve(1),
  });
}
