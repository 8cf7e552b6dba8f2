import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createUpstreams } from "../../src/app/components.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics.ts";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import type { Runner } from "../../src/upstreams/runner/runner.ts";
import { refuse, silent } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { modelOf } from "./runner-support.ts";
import { callOf, read } from "./support.ts";

const KEY = "secret-of-the-operator";

let fake: FakeUpstream;
let metrics: Metrics;
let tokens: TokenCounter;
let runner: Runner;
let logged: string[];

beforeEach(async () => {
  fake = await FakeUpstream.start();
  metrics = createMetrics("test");
  logged = [];
  tokens = new TokenCounter();
  runner = createUpstreams({
    env: { KEY },
    tokens,
    log: createLog("info", { write: (line) => logged.push(line) }),
    metrics,
    recordAttempt: undefined,
  });
});
afterEach(async () => {
  await runner.close();
  await tokens.close();
  await fake.stop();
});

test("attempts are counted by upstream and outcome; failures are logged with their call, without key and stack", async () => {
  const model = modelOf(fake.settings({ apiKeyEnv: "KEY" }));
  await runner.use([model]);
  fake.next(refuse(500, {}, JSON.stringify({ error: { message: `no such key: ${KEY}` } })));
  expect((await read(runner.streamEvents(callOf(model)))).text).toBe("Hello, world.");

  const page = await metrics.registry.metrics();
  const name = `openai 127.0.0.1:${fake.port}/v1 fake-model`;
  expect(page).toContain(`vx_upstream_attempts_total{upstream="${name}",outcome="failed"} 1`);
  expect(page).toContain(`vx_upstream_attempts_total{upstream="${name}",outcome="ok"} 1`);
  expect(page).toContain(`vx_upstream_running{upstream="${name}"} 0`);
  expect(page).toContain(`vx_upstream_open{upstream="${name}"} 0`);
  expect(logged.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      level: "warn",
      time: expect.any(String),
      request_id: "req_1",
      account_id: "acct_1",
      model: model.id,
      upstream: name,
      attempt: 1,
      reason: "failed",
      detail: "the upstream responded with 500: no such key: [redacted]",
      msg: "upstream attempt failed",
    },
  ]);
});

test("the metrics show running calls and blocked accounts", async () => {
  const leaving = new AbortController();
  const model = modelOf(fake.settings());
  await runner.use([model]);
  fake.next(silent);
  const call = read(runner.streamEvents(callOf(model, { signal: leaving.signal })));
  await fake.until(({ calls }) => calls.length === 1);
  expect(await metrics.registry.metrics()).toMatch(/^vx_upstream_running\{.*\} 1$/m);
  leaving.abort(new Error("gone"));
  await call;
  fake.always(refuse(500));
  const failFor = async (accountIds: readonly string[]) => {
    await Promise.all(accountIds.map((accountId) => read(runner.streamEvents(callOf(model, { accountId })))));
    return await metrics.registry.metrics();
  };
  const ofOneAccount = await failFor(Array(5).fill("acct_1"));
  expect(ofOneAccount).toMatch(/^vx_upstream_open\{.*\} 0$/m);
  expect(ofOneAccount).toMatch(/^vx_upstream_open_accounts\{.*\} 1$/m);
  const ofSeveral = await failFor(["acct_2", "acct_3", "acct_4", "acct_5"]);
  expect(ofSeveral).toMatch(/^vx_upstream_open\{.*\} 1$/m);
});

test("a call aborted during the wait between two attempts ends at once", async () => {
  const leaving = new AbortController();
  const model = modelOf(fake.settings());
  await runner.use([model]);
  fake.always(refuse(429, { "retry-after": "3" }));
  const call = read(runner.streamEvents(callOf(model, { signal: leaving.signal })));
  await fake.until(({ calls }) => calls[0]?.ended === "finished");
  // The failure of the first attempt is logged before the wait of three seconds begins.
  while (logged.length === 0) await setImmediate();
  await setImmediate();
  leaving.abort(new Error("gone"));
  let ended: Awaited<typeof call> | undefined;
  void call.then((result) => {
    ended = result;
  });
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  expect(ended?.failure).toBe(leaving.signal.reason);
});
