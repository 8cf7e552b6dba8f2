import { afterEach, beforeEach, expect, test } from "vitest";
import { replyWhen } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { createTestRunner, modelOf, type TestRunner } from "./runner-support.ts";
import { callOf, read } from "./support.ts";

let fake: FakeUpstream;
let other: FakeUpstream;
let runner: TestRunner;

beforeEach(async () => {
  [fake, other] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()]);
  runner = createTestRunner();
});
afterEach(async () => {
  await runner.close();
  await Promise.all([fake.stop(), other.stop()]);
});

test("models with equal settings share an upstream, and upstreams of one server share connections", async () => {
  const models = [
    modelOf(fake.settings()),
    modelOf(fake.settings()),
    modelOf(fake.settings({ model: "another" }), other.settings()),
  ];
  await runner.use(models);
  expect(runner.status().length).toBe(3);
  expect(runner.connections.size).toBe(2);
  for (const model of models) await read(runner.streamEvents(callOf(model)));
  expect(fake.connections).toBeLessThanOrEqual(2);
});

test("an upstream removed from the catalog closes after its last call has completed", async () => {
  const old = modelOf(fake.settings());
  await runner.use([old]);
  const gate = Promise.withResolvers<void>();
  fake.next(replyWhen(gate.promise));
  const call = read(runner.streamEvents(callOf(old)));
  await fake.until(({ calls }) => calls.length === 1);

  await runner.use([modelOf(other.settings())]);
  expect(runner.status().map(({ running }) => running)).toEqual([1, 0]);
  gate.resolve();
  expect((await call).text).toBe("Hello, world.");
  expect(runner.status().length).toBe(1);
  await fake.until(({ openConnections }) => openConnections === 0);
});

test("an upstream that stays in the catalog keeps its connections", async () => {
  await runner.use([modelOf(fake.settings())]);
  await read(runner.streamEvents(callOf(modelOf(fake.settings()))));
  await runner.use([modelOf(fake.settings(), other.settings())]);
  await read(runner.streamEvents(callOf(modelOf(fake.settings()))));
  expect(fake.connections).toBeLessThanOrEqual(2);
  expect(fake.openConnections).toBeGreaterThan(0);
});

test("a call with a model of the old catalog gets a reply, then its upstream closes", async () => {
  await runner.use([]);
  expect((await read(runner.streamEvents(callOf(modelOf(fake.settings()))))).text).toBe("Hello, world.");
  expect([runner.status().length, runner.connections.size]).toEqual([0, 0]);
  await fake.until(({ openConnections }) => openConnections === 0);
});

test("a catalog with a missing key is rejected, and the previous one stays in use", async () => {
  const good = modelOf(fake.settings());
  await runner.use([good]);
  await expect(runner.use([modelOf(other.settings({ apiKeyEnv: "NOT_SET" }))])).rejects.toThrow("NOT_SET");
  expect((await read(runner.streamEvents(callOf(good)))).text).toBe("Hello, world.");
  expect(runner.status().length).toBe(1);
});
