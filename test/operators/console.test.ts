import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ConsoleService, type WatchAuditResponse, type WatchOverviewResponse } from "../../gen/vx/admin/v1/console_pb.js";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN, startTestApp, useOwnApp } from "../support/app.ts";
import { useOperator } from "../support/fixtures.ts";
import { usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";

const app = useOwnApp();
const operator = useOperator(app);
const key = usePaidKey(app);

const clientOf = (baseUrl: string) => createClient(ConsoleService, createConnectTransport({ baseUrl, httpVersion: "2" }));

function watch(token = OPERATOR_TOKEN, { adminUrl } = app as { adminUrl: string }) {
  const stop = new AbortController();
  const options = { headers: bearer(token), signal: stop.signal };
  const stream = clientOf(adminUrl).watchOverview({}, options)[Symbol.asyncIterator]();
  const next = async () => (await stream.next()).value as WatchOverviewResponse;
  return { stream, next, stop: () => stop.abort() };
}

async function generate(model: string): Promise<number> {
  const body = { model, messages: [{ role: "user", content: "Hello" }], max_tokens: 5 };
  return (await sendJson(app.url, { verb: "POST", path: "/v1/generate", secret: key.secret, body })).status;
}

describe("the overview", () => {
  // Of the timers, the tests need those of the overview earlier.
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true }));
  afterEach(() => void vi.useRealTimers());
  const endPause = () => vi.advanceTimersByTime(2_000);

  test("counts calls, failures and charges of this server, and shows the database", async () => {
    const { next, stop } = watch();
    const first = await next();
    expect(first.server).toMatchObject({ windowSeconds: 0, calls: 0n, failures: [], chargedMicros: 0n });
    expect(first.service).toMatchObject({ servers: 1, runningGenerations: 0n, heldMicros: 0n });
    expect(first.database).toMatchObject({ reachable: true });
    const statuses = [await generate("vx-sandbox-small"), await generate("none"), await generate("none")];
    expect(statuses).toEqual([200, 404, 404]);
    endPause();
    // A message that was measured before the last call counts only some of the calls.
    let message = await next();
    while (message.server?.calls !== 3n) message = await next();
    const { server, time } = message;
    // A console that is opened later sees the calls of before.
    const later = watch();
    const { lastHour } = await later.next();
    later.stop();
    const failures = [{ reason: "model_not_found", calls: 2n }];
    expect(lastHour).toMatchObject({ calls: 3n, failures, chargedMicros: server?.chargedMicros, minutes: [] });
    expect(lastHour?.seconds).toBeGreaterThan(server?.windowSeconds ?? 0);
    expect(server).toMatchObject({ failures });
    expect(server?.chargedMicros).toBeGreaterThan(0n);
    expect(server?.callsPerSecond).toBeGreaterThan(0);
    const sandbox = { name: expect.stringContaining("sandbox"), openBreakers: 0, succeeded: 1n, failed: 0n };
    expect(server?.upstreams).toContainEqual(expect.objectContaining(sandbox));
    expect(time?.seconds).toBeGreaterThanOrEqual(first.time?.seconds ?? 0n);
    stop();
  });

  test("ends when its operator is revoked", async () => {
    const { operator: vic, secret } = await operator.createOperator({ name: "vic", role: "viewer" });
    const { next } = watch(secret);
    await next();
    await operator.revokeOperator({ operatorId: vic?.id ?? "" });
    endPause();
    await expect(next()).rejects.toThrow(/unauthenticated/);
  });

  test("is sent to at most ten streams of an operator; others have theirs", async () => {
    const { secret } = await operator.createOperator({ name: "many", role: "viewer" });
    const streams = Array.from({ length: 10 }, () => watch(secret));
    await Promise.all(streams.map(({ next }) => next()));
    await expect(watch(secret).next()).rejects.toThrow(/unavailable/);
    const other = watch();
    expect(await other.next()).toBeDefined();
    for (const { stop } of [...streams, other]) stop();
  });

  test("shows the last audit", async () => {
    await operator.audit({});
    const { next, stop } = watch();
    // The first figures can be those of an earlier watcher.
    let { audit } = await next();
    for (; audit?.lastStartedAt === undefined; { audit } = await next()) endPause();
    stop();
    expect(audit).toMatchObject({ lastFindings: 0, everyHours: 0 });
    expect(audit.nextAt).toBeUndefined();
  });
});

test("an audit sends its progress and its result", async () => {
  const messages: WatchAuditResponse[] = [];
  for await (const message of clientOf(app.adminUrl).watchAudit({}, { headers: bearer(OPERATOR_TOKEN) })) messages.push(message);
  const done = messages.map(({ partsDone }) => partsDone);
  expect([...new Set(done)]).toEqual([0, 2, 3]);
  expect(done).toEqual(done.toSorted());
  for (const { parts, result } of messages.slice(0, -1)) expect([parts, result]).toEqual([3, undefined]);
  const whole = await operator.audit({});
  expect(messages.at(-1)).toMatchObject({ partsDone: 3, parts: 3, entries: whole.entries, result: whole });
  expect(whole.consistent).toBe(true);
});

test("a drain ends the streams at once", async () => {
  const other = await startTestApp({ database: app.database });
  const { stream } = watch(OPERATOR_TOKEN, other);
  await stream.next();
  // Without timers, nothing else ends them.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const stopped = other.stop();
  expect((await stream.next()).done).toBe(true);
  while (await Promise.race([stopped.then(() => false), new Promise((resolve) => setImmediate(resolve, true))]))
    vi.advanceTimersByTime(1_000);
  vi.useRealTimers();
});
