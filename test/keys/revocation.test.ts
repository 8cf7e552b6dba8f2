import { afterAll, beforeAll, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer, type Caller, protocols } from "../support/protocols.ts";

const CALLS_AFTER_REVOCATION = 10;
let servers: [TestApp, TestApp];
let callers: Caller[];

beforeAll(async () => {
  const first = await startTestApp();
  servers = [first, await startTestApp({ database: first.database })];
  const protocol = protocols.find(({ name }) => name === "Connect binary over HTTP/2");
  callers = servers.flatMap(({ url }) => Array.from({ length: 4 }, () => protocol?.open(url) as Caller));
});
afterAll(async () => {
  for (const caller of callers) caller.close();
  for (const server of servers.toReversed()) await server.stop();
});

test("every server rejects calls that are sent after RevokeKey returned", async () => {
  const operator = operatorOf(servers[0]);
  const key = await createTestKey(operator);
  const other = await createTestKey(operator, { accountId: key.accountId });
  let isRevoked = false;
  const call = async (caller: Caller) => {
    const outcome = await caller.call(MeService.method.getMe, {}, bearer(key.secret));
    return outcome.ok ? "ok" : outcome.reason;
  };
  const underway = callers.map(() => Promise.withResolvers<void>());
  const floods = callers.map(async (caller, i) => {
    while (!isRevoked) if ((await call(caller)) === "ok") underway[i]?.resolve();
    const endings: string[] = [];
    while (endings.length < CALLS_AFTER_REVOCATION) endings.push(await call(caller));
    return endings;
  });
  await Promise.all(underway.map(({ promise }) => promise));
  const outcome = await callers.at(-1)?.call(KeyService.method.revokeKey, { keyId: key.id }, bearer(other.secret));
  isRevoked = true;
  expect(outcome).toMatchObject({ ok: true });
  const endings = (await Promise.all(floods)).flat();
  expect(endings).toEqual(Array(callers.length * CALLS_AFTER_REVOCATION).fill("revoked_api_key"));
});

test("the streams of a key are cut when it loses the scope of generations, and not when it loses another one", async () => {
  const [{ database }] = servers;
  const operator = operatorOf(servers[0]);
  const { id: keyId } = await createTestKey(operator, { scopes: ["generate", "read", "keys"] });
  const reasons = () => database.owner`SELECT reason FROM vx.withdrawn_keys(3600) WHERE key_id = ${keyId}`;
  await operator.updateKey({ keyId, scopes: ["generate", "read"] });
  expect(await reasons()).toEqual([]);
  await operator.updateKey({ keyId, scopes: ["read"] });
  expect(await reasons()).toEqual([{ reason: "insufficient_scope" }]);
});
