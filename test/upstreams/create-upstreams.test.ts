import { afterEach, beforeEach, expect, test } from "vitest";
import { createUpstreams } from "../../src/create-upstreams.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import type { Runner } from "../../src/upstreams/runner.ts";
import { refuse, silent } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { modelOf } from "./runner-support.ts";
import { NEVER, PROMPT, read } from "./support.ts";

const KEY = "secret-of-the-operator";

let fake: FakeUpstream;
let metrics: Metrics;
let tokens: TokenCounter;
let runner: Runner;
let logged: string[];

beforeEach(async () => {
  fake = await FakeUpstream.start();
  metrics = createMetrics();
  logged = [];
  tokens = new TokenCounter();
  runner = createUpstreams({
    env: { KEY },
    tokens,
    log: createLog("info", { write: (line) => logged.push(line) }),
    metrics,
  });
});
afterEach(async () => {
  await runner.close();
  await tokens.close();
  await fake.stop();
});

test("tries are counted by upstream and outcome, and failures logged without the key", async () => {
  const model = modelOf(fake.settings({ apiKeyEnv: "KEY" }));
  await runner.use([model]);
  fake.next(refuse(500, {}, JSON.stringify({ error: { message: `no such key: ${KEY}` } })));
  expect((await read(runner.run(model, PROMPT, NEVER))).text).toBe("Hello, world.");

  const page = await metrics.registry.metrics();
  const name = `openai 127.0.0.1:${fake.port}/v1 fake-model`;
  expect(page).toContain(`vx_upstream_tries_total{upstream="${name}",outcome="failed"} 1`);
  expect(page).toContain(`vx_upstream_tries_total{upstream="${name}",outcome="ok"} 1`);
  expect(page).toContain(`vx_upstream_running{upstream="${name}"} 0`);
  expect(page).toContain(`vx_upstream_open{upstream="${name}"} 0`);
  expect(logged.length).toBe(1);
  expect(JSON.parse(logged[0] ?? "")).toMatchObject({
    upstream: name,
    outcome: "failed",
    err: { message: "the upstream answered 500: no such key: [redacted]" },
  });
});

test("what runs is seen while it runs, and an upstream that is down", async () => {
  const leaving = new AbortController();
  const model = modelOf(fake.settings());
  await runner.use([model]);
  fake.next(silent);
  const call = read(runner.run(model, PROMPT, leaving.signal));
  await fake.until(({ calls }) => calls.length === 1);
  expect(await metrics.registry.metrics()).toMatch(/^vx_upstream_running\{.*\} 1$/m);
  leaving.abort(new Error("gone"));
  await call;
  fake.always(refuse(500));
  await Promise.all(Array.from({ length: 5 }, () => read(runner.run(model, PROMPT, NEVER))));
  expect(await metrics.registry.metrics()).toMatch(/^vx_upstream_open\{.*\} 1$/m);
});

test("a caller who leaves during the wait between two tries is let go at once", async () => {
  const leaving = new AbortController();
  const model = modelOf(fake.settings());
  await runner.use([model]);
  fake.always(refuse(429, { "retry-after": "3" }));
  const call = read(runner.run(model, PROMPT, leaving.signal));
  await fake.until(({ calls }) => calls[0]?.ended === "finished");
  const startedAt = performance.now();
  setTimeout(() => leaving.abort(new Error("gone")), 20);
  expect((await call).failure).toBe(leaving.signal.reason);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});
