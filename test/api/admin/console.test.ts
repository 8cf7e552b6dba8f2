import type { DescMethodServerStreaming } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, test } from "vitest";
import { ConsoleService, type WatchAuditResponse, type WatchOverviewResponse } from "../../../gen/vx/admin/v1/console_pb.js";
import { operatorServices } from "../../../src/api/services.ts";
import { ROLES, type Role } from "../../../src/domain/operator.ts";
import { policyOf } from "../../../src/rules/policy.ts";
import { OPERATOR_TOKEN, startTestApp, useOwnApp } from "../../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../../support/fixtures.ts";
import { bearer } from "../../support/protocols.ts";

let key: TestKey;

const app = useOwnApp();
beforeAll(async () => {
  const operator = operatorOf(app);
  key = await createTestKey(operator);
  await operator.creditAccount({
    accountId: key.accountId,
    amountMicros: 1_000_000n,
    reason: "test",
    idempotencyKey: "1",
  });
});

function watch(token = OPERATOR_TOKEN) {
  const client = createClient(ConsoleService, createConnectTransport({ baseUrl: app.adminUrl, httpVersion: "2" }));
  const stop = new AbortController();
  const stream = client.watchOverview({}, { headers: bearer(token), signal: stop.signal })[Symbol.asyncIterator]();
  const next = async () => (await stream.next()).value as WatchOverviewResponse;
  return { next, stop: () => stop.abort() };
}

async function generate(model: string): Promise<number> {
  const response = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 5 }),
  });
  await response.text();
  return response.status;
}

describe.concurrent("the overview", () => {
  test("counts calls, failures and charges of this server, and shows the database", async () => {
    const { next, stop } = watch();
    const first = await next();
    expect(first.server).toMatchObject({ windowSeconds: 0, calls: 0n, failures: [], chargedMicros: 0n });
    expect(first.service).toMatchObject({ servers: 1, runningGenerations: 0n, heldMicros: 0n });
    expect(first.database).toMatchObject({ reachable: true });

    expect(await generate("vx-sandbox-small")).toBe(200);
    expect(await generate("none")).toBe(404);
    expect(await generate("none")).toBe(404);
    // A message that is sent meanwhile counts only some of the calls.
    let message = await next();
    while (message.server?.calls !== 3n) message = await next();
    const { server, time } = message;
    // A console that is opened later sees the calls of before.
    const later = watch();
    const { lastHour } = await later.next();
    later.stop();
    expect(lastHour).toMatchObject({
      calls: 3n,
      failures: [{ reason: "model_not_found", calls: 2n }],
      chargedMicros: server?.chargedMicros,
      minutes: [],
    });
    expect(lastHour?.seconds).toBeGreaterThan(server?.windowSeconds ?? 0);
    expect(server).toMatchObject({ failures: [{ reason: "model_not_found", calls: 2n }] });
    expect(server?.chargedMicros).toBeGreaterThan(0n);
    expect(server?.callsPerSecond).toBeGreaterThan(0);
    expect(server?.upstreams).toContainEqual(
      expect.objectContaining({
        name: expect.stringContaining("sandbox"),
        openBreakers: 0,
        succeeded: 1n,
        failed: 0n,
      }),
    );
    expect(time?.seconds).toBeGreaterThan(first.time?.seconds ?? 0n);
    stop();
  });

  test("ends when its operator is revoked", async () => {
    const admin = operatorOf(app);
    const { operator, secret } = await admin.createOperator({ name: "vic", role: "viewer" });
    const { next } = watch(secret);
    await next();
    await admin.revokeOperator({ operatorId: operator?.id ?? "" });
    await expect(next()).rejects.toThrow(/unauthenticated/);
  });

  test("is sent to at most ten streams of an operator; others have theirs", async () => {
    const { secret } = await operatorOf(app).createOperator({ name: "many", role: "viewer" });
    const streams = Array.from({ length: 10 }, () => watch(secret));
    await Promise.all(streams.map(({ next }) => next()));
    await expect(watch(secret).next()).rejects.toThrow(/unavailable/);
    const other = watch();
    expect(await other.next()).toBeDefined();
    for (const { stop } of [...streams, other]) stop();
  });
});

/** A request that lacks required fields was allowed. */
function ifInvalid(error: unknown): unknown {
  if (ConnectError.from(error).code === Code.InvalidArgument) return error;
  throw error;
}

describe("streams", () => {
  const streams = operatorServices
    .flatMap(({ methods }) => methods)
    .filter(({ methodKind }) => methodKind === "server_streaming") as DescMethodServerStreaming[];
  const first = async (method: DescMethodServerStreaming, headers: Record<string, string>) => {
    const client = createClient(method.parent, createConnectTransport({ baseUrl: app.adminUrl, httpVersion: "2" })) as Record<
      string,
      (request: object, options: object) => AsyncIterable<unknown>
    >;
    const stop = new AbortController();
    const messages = client[method.localName]?.({}, { headers, signal: stop.signal });
    for await (const message of messages ?? []) {
      stop.abort();
      return message;
    }
    return undefined;
  };

  test("every stream requires a token, and the role of its .proto", async () => {
    expect(streams.length).toBeGreaterThan(0);
    for (const role of ROLES) {
      const { secret } = await operatorOf(app).createOperator({ name: `stream ${role}`, role });
      for (const method of streams) {
        const what = `${role}: ${method.name}`;
        const isAllowed = ROLES.indexOf(role) >= ROLES.indexOf(policyOf(method).role as Role);
        if (isAllowed) expect(await first(method, bearer(secret)).catch(ifInvalid), what).toBeDefined();
        else await expect(first(method, bearer(secret)), what).rejects.toThrow(/permission_denied/);
      }
    }
    const refused = [{}, bearer("wrong"), bearer(key.secret), { cookie: `vx_session=${OPERATOR_TOKEN}` }];
    for (const method of streams)
      for (const headers of refused) await expect(first(method, headers), method.name).rejects.toThrow(/unauthenticated/);
  });
});

test("an audit sends its progress and its result", async () => {
  const client = createClient(ConsoleService, createConnectTransport({ baseUrl: app.adminUrl, httpVersion: "2" }));
  const messages: WatchAuditResponse[] = [];
  for await (const message of client.watchAudit({}, { headers: bearer(OPERATOR_TOKEN) })) messages.push(message);
  const done = messages.map(({ partsDone }) => partsDone);
  expect([...new Set(done)]).toEqual([0, 2, 3]);
  expect(done).toEqual(done.toSorted());
  for (const { parts, result } of messages.slice(0, -1)) expect([parts, result]).toEqual([3, undefined]);
  const whole = await operatorOf(app).audit({});
  expect(messages.at(-1)).toMatchObject({ partsDone: 3, parts: 3, entries: whole.entries, result: whole });
  expect(whole.consistent).toBe(true);
});

const A_THIRD_OF_A_DRAIN_MS = 10_000;

test(
  "a drain ends the streams at once",
  async () => {
    const other = await startTestApp({ database: app.database });
    const client = createClient(ConsoleService, createConnectTransport({ baseUrl: other.adminUrl, httpVersion: "2" }));
    const stream = client.watchOverview({}, { headers: bearer(OPERATOR_TOKEN) })[Symbol.asyncIterator]();
    await stream.next();
    const stopped = other.stop();
    expect((await stream.next()).done).toBe(true);
    await stopped;
  },
  A_THIRD_OF_A_DRAIN_MS,
);

test("the overview shows the last audit", async () => {
  await operatorOf(app).audit({});
  const { next, stop } = watch();
  // The first figures can be those of an earlier watcher.
  let { audit } = await next();
  while (audit?.lastStartedAt === undefined) audit = (await next()).audit;
  stop();
  expect(audit).toMatchObject({ lastFindings: 0, everyHours: 0 });
  expect(audit.nextAt).toBeUndefined();
});
