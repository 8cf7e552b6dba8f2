import { readFileSync } from "node:fs";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { startTestApp } from "../support/app.ts";
import { replyWhen, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import { generators } from "../support/generators.ts";
import { MODEL, REQUEST, useMetered } from "../support/metered.ts";
import { createModelsFile, modelsYaml } from "../support/models.ts";
import { bearer, protocols } from "../support/protocols.ts";

const { open } = generators.at(-1) as (typeof generators)[number];
const metered = useMetered();
beforeEach(() => metered.upstream.reset());

test("a stop waits for a call that continues without its caller, and a retry after the restart gets its response", async () => {
  const { database } = metered.app;
  const env = { VX_MODELS: metered.modelsFile };
  const app = await startTestApp({ env, database });
  const key = await metered.payer(1_000n);
  const rest = Promise.withResolvers<void>();
  metered.upstream.next(replyWhen(rest.promise, 1));
  const left = new AbortController();
  const options = { secret: key.secret, headers: { "idempotency-key": "kept" } };
  const lost = open(app.url).generate(REQUEST, { ...options, signal: left.signal });
  await metered.upstream.until(({ executions }) => executions.length === 1);
  left.abort();
  await lost.catch(() => undefined);

  let isStopped = false;
  const stopped = app.stop().then(() => {
    isStopped = true;
  });
  await vi.waitFor(() => expect(fetch(`${app.url}/livez`)).rejects.toThrow());
  expect(await metered.account(key)).toEqual({ balance: 1_000, held: 46 });
  expect(isStopped).toBe(false);
  rest.resolve();
  await stopped;
  expect(await metered.rows(key)).toHaveLength(1);
  expect(await open(metered.app.url).generate(REQUEST, options)).toMatchObject({
    message: { content: "Hello, world." },
    balanceMicros: 981n,
  });
  expect(metered.upstream.executions).toHaveLength(1);
});

test("30 s into a drain, a stream that continues without its caller is stopped and charged", async () => {
  const { database } = metered.app;
  const app = await startTestApp({ env: { VX_MODELS: metered.modelsFile }, database });
  const key = await metered.payer(1_000n);
  metered.upstream.next(silentAfter(1));
  const options = { secret: key.secret, headers: { "idempotency-key": "left" } };
  const left = new AbortController();
  const lost = open(app.url)
    .stream(REQUEST, { ...options, signal: left.signal })
    [Symbol.asyncIterator]();
  await lost.next();
  left.abort();
  await lost.next().catch(() => undefined);

  // The timers of the drain; they also run with the time of the test.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true });
  onTestFinished(() => void vi.useRealTimers());
  const stopped = app.stop();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await metered.account(key)).toEqual({ balance: 1_000, held: 46 });
  await vi.advanceTimersByTimeAsync(10_000);
  await stopped;
  expect(await metered.rows(key)).toMatchObject([
    { input: 9, output: 1, reason: expect.stringContaining("the server shut down") },
  ]);
});

test("a drain finishes and charges a running stream", async () => {
  const { database } = metered.app;
  const app = await startTestApp({ env: { VX_MODELS: metered.modelsFile }, database });
  const key = await metered.payer(1_000n);
  const rest = Promise.withResolvers<void>();
  metered.upstream.next(replyWhen(rest.promise, 1));
  let text = "";
  let stopped: Promise<void> | undefined;
  for await (const { event } of open(app.url).stream(REQUEST, { secret: key.secret })) {
    if (event.case === "delta") text += event.value.content;
    stopped ??= app.stop();
    rest.resolve();
  }
  await stopped;
  expect(text).toBe("Hello, world.");
  expect(await metered.account(key)).toEqual({ balance: 981, held: 0 });
});

test("a call whose model is removed from the file continues and is charged at its original price", async () => {
  const models = createModelsFile(readFileSync(metered.modelsFile, "utf8"));
  const { database } = metered.app;
  const app = await startTestApp({ env: { VX_MODELS: models.path }, database });
  const { url } = app;
  const key = await metered.payer(1_000n);
  const rest = Promise.withResolvers<void>();
  metered.upstream.next(replyWhen(rest.promise, 1));
  const answered = open(url).generate(REQUEST, { secret: key.secret });
  await metered.upstream.until(({ executions }) => executions.length === 1);

  models.write(modelsYaml(["another"]));
  await app.reload();
  const caller = (protocols[0] as (typeof protocols)[number]).open(url);
  const listed = await caller.call(ModelService.method.listModels, {}, bearer(key.secret));
  expect(listed.ok && listed.message.data.map(({ id }) => id)).toEqual(["another"]);
  await expect(open(url).generate(REQUEST, { secret: key.secret })).rejects.toMatchObject({ reason: "model_not_found" });
  rest.resolve();
  expect(await answered).toMatchObject({ model: MODEL, usage: { costMicros: 19n }, balanceMicros: 981n });
  caller.close();
  await app.stop();
  models.remove();
});
