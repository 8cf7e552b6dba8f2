import { afterAll, beforeAll, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, type Operator, operatorOf } from "../support/fixtures.ts";
import { bearer, type Caller, protocols } from "../support/protocols.ts";

const CALLERS_PER_SERVER = 4;
const CALLS_AFTER_REVOCATION = 10;

let servers: TestApp[];
let operator: Operator;

beforeAll(async () => {
  const first = await startTestApp();
  servers = [first, await startTestApp({ database: first.database })];
  operator = operatorOf(first);
});
afterAll(async () => {
  for (const server of [...servers].reverse()) await server.stop();
});

type Sent = { readonly afterRevocation: boolean; readonly ending: string };

test("every server rejects calls that are sent after RevokeKey returned", async () => {
  const key = await createTestKey(operator);
  const other = await createTestKey(operator, { accountId: key.accountId });
  const flood = startFlood(key.secret);
  await flood.underway;

  const caller = openCaller(servers[1] as TestApp);
  const outcome = await caller.call(KeyService.method.revokeKey, { keyId: key.id }, bearer(other.secret));
  flood.announceRevocation();
  caller.close();
  expect(outcome.ok).toBe(true);

  const sent = await flood.ended;
  const before = sent.filter(({ afterRevocation }) => !afterRevocation);
  const after = sent.filter(({ afterRevocation }) => afterRevocation);
  expect(before.filter(({ ending }) => ending === "ok").length).toBeGreaterThan(0);
  expect(after).toHaveLength(2 * CALLERS_PER_SERVER * CALLS_AFTER_REVOCATION);
  expect(new Set(after.map(({ ending }) => ending))).toEqual(new Set(["revoked_api_key"]));
});

/** Callers on both servers that send calls continuously until each has sent several after the revocation. */
function startFlood(secret: string) {
  let revoked = false;
  let callsUnderway = 0;
  const underway = Promise.withResolvers<void>();
  const run = async (server: TestApp): Promise<Sent[]> => {
    const caller = openCaller(server);
    const sent: Sent[] = [];
    for (let after = 0; after < CALLS_AFTER_REVOCATION; ) {
      const afterRevocation = revoked;
      const outcome = await caller.call(MeService.method.getMe, {}, bearer(secret));
      sent.push({ afterRevocation, ending: outcome.ok ? "ok" : outcome.reason });
      if (afterRevocation) after++;
      if (++callsUnderway === 50) underway.resolve();
    }
    caller.close();
    return sent;
  };
  const runs = servers.flatMap((server) => Array.from({ length: CALLERS_PER_SERVER }, () => run(server)));
  return {
    underway: underway.promise,
    announceRevocation: () => {
      revoked = true;
    },
    ended: Promise.all(runs).then((all) => all.flat()),
  };
}

function openCaller(server: TestApp): Caller {
  return protocols.find(({ name }) => name === "Connect binary over HTTP/2")?.open(server.url) as Caller;
}
