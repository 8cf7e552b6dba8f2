import { afterAll, expect, test, vi } from "vitest";
import type { Billing } from "../../src/generations/billing.ts";
import { Presence } from "../../src/generations/presence.ts";
import { createPayer, endOf, holdOf, moneyOf, moneyProblems, newGenerationId, type Payer, placeHold } from "../support/payer.ts";
import { clock, createTestBilling, useOwnStore } from "../support/store.ts";

const store = useOwnStore();

afterAll(async () => {
  expect(await moneyProblems(store)).toEqual([]);
});

const servers = new Map<string, Billing>();
function serverOf(serverId: string): Billing {
  const server = servers.get(serverId) ?? createTestBilling(store.database, { serverId });
  servers.set(serverId, server);
  return server;
}
const heartbeat = (serverId: string) => store.database.call("heartbeat", serverId);
const heldOf = async (payer: Payer) => (await moneyOf(store, payer))?.held;

/** Simulates this many seconds in which only the named servers sent heartbeats. */
async function pass(seconds: number, ...seen: string[]): Promise<void> {
  await store.owner`
    UPDATE vx.servers SET present_since = present_since - make_interval(secs => ${seconds}),
      seen_at = CASE WHEN id = ANY (${seen}) THEN seen_at ELSE seen_at - make_interval(secs => ${seconds}) END`;
}

async function sweep(): Promise<number> {
  let swept = 0;
  for (const { lanes_to_sweep } of await store.database.call<{ lanes_to_sweep: number }>("lanes_to_sweep", 0, 1_023)) {
    const [row] = await store.database.call<{ sweep: bigint }>("sweep", lanes_to_sweep);
    swept += Number(row?.sweep);
  }
  return swept;
}

function presenceOf(serverId: string, options: Partial<ConstructorParameters<typeof Presence>[1]>): Presence {
  return new Presence(store.database, {
    serverId,
    clock,
    pauseMs: 10,
    heartbeats: store.database,
    cells: () => [],
    isOpen: () => false,
    release: () => expect.unreachable(),
    onReleased: () => undefined,
    onFailure: (_, error) => expect.unreachable(String(error)),
    ...options,
  });
}

/** All lanes are searched in so many rounds. */
async function search(presence: Presence): Promise<void> {
  for (let round = 0; round < 16; round++) await presence.releaseAbandoned();
}

async function held(serverId: string, seconds = 600, key?: string) {
  const payer = await createPayer(store.database, 100n);
  const id = newGenerationId(payer);
  const asked = key === undefined ? undefined : { key, digest: "payload" };
  await serverOf(serverId).hold({ ...holdOf(payer, 60n, id, asked), seconds });
  return { payer, id };
}

test("holds and idempotency keys of a server without a heartbeat for 20 s are released, those of other servers are kept", async () => {
  await heartbeat("alive");
  await heartbeat("dead");
  const lost = await held("dead", 600, "k");
  const kept = await held("alive");
  await pass(19, "alive");
  await heartbeat("alive");
  expect(await sweep()).toBe(0);
  await pass(2, "alive");
  await heartbeat("alive");
  expect(await sweep()).toBe(1);
  expect([await heldOf(lost.payer), await heldOf(kept.payer)]).toEqual([0, 60]);
  expect(await serverOf("dead").end(endOf(lost.payer, lost.id, 10n, "late"))).toEqual({ outcome: "missing" });
  const again = holdOf(lost.payer, 60n, newGenerationId(lost.payer), { key: "k", digest: "other" });
  expect(await serverOf("alive").hold(again)).toEqual({ outcome: "held" });
  await serverOf("alive").end(endOf(lost.payer, again.generationId, undefined));
  await serverOf("alive").end(endOf(kept.payer, kept.id, undefined));
});

test("a server with a gap in its heartbeats removes no other server for 20 s", async () => {
  await heartbeat("observer");
  await heartbeat("other");
  const { payer, id } = await held("other");
  // As if the database was unreachable for both servers, or the machine was suspended.
  await pass(60);
  await heartbeat("observer");
  expect(await sweep()).toBe(0);
  await pass(21, "observer", "other");
  await heartbeat("other");
  await heartbeat("observer");
  expect(await sweep()).toBe(0);
  expect(await heldOf(payer)).toBe(60);
  await serverOf("other").end(endOf(payer, id, undefined));
});

test.each([undefined, "key"])("a hold of a server that was removed and registers again is kept (%s)", async (key) => {
  await heartbeat("paused");
  await store.database.call("remove_servers", "paused");
  const { payer, id } = await held("paused", 600, key);
  expect(await sweep()).toBe(0);
  expect(await serverOf("paused").end(endOf(payer, id, 10n))).toMatchObject({ outcome: "settled" });
});

test("a server without a heartbeat for 20 s is not removed while it places a hold", async () => {
  await heartbeat("observer");
  await heartbeat("paused");
  await pass(21, "observer");
  const { payer, id } = await held("paused");
  await heartbeat("observer");
  expect(await sweep()).toBe(0);
  expect(await serverOf("paused").end(endOf(payer, id, 10n))).toMatchObject({ outcome: "settled" });
});

test("an expired hold is released although its server sends heartbeats", async () => {
  await heartbeat("alive");
  const { payer, id } = await held("alive", 0);
  expect(await sweep()).toBe(1);
  expect(await heldOf(payer)).toBe(0);
  expect(await serverOf("alive").end(endOf(payer, id, 10n))).toEqual({ outcome: "missing" });
});

test("a server releases its holds that it does not track, in any lane, and keeps those it tracks", async () => {
  const billing = createTestBilling(store.database, { serverId: "owner" });
  const released: number[] = [];
  const presence = presenceOf("owner", {
    isOpen: (generationId) => billing.isOpen(generationId),
    release: (hold) => billing.end({ ...hold, charge: undefined }),
    onReleased: (holds) => released.push(holds),
  });
  await heartbeat("owner");
  const leftovers = [await held("owner", 600, "k"), await held("owner"), await held("owner")];
  const known = await createPayer(store.database, 100n);
  const id = await placeHold(billing, known, 60n);
  expect(await Promise.all(leftovers.map(({ payer }) => heldOf(payer)))).toEqual([60, 60, 60]);
  await search(presence);
  expect(await Promise.all(leftovers.map(({ payer }) => heldOf(payer)))).toEqual([0, 0, 0]);
  expect(released.reduce((sum, holds) => sum + holds, 0)).toBe(3);
  expect(await heldOf(known)).toBe(60);
  // The idempotency key of the released hold can be used again.
  const { payer } = leftovers[0] as { payer: Payer };
  const again = holdOf(payer, 60n, newGenerationId(payer), { key: "k", digest: "payload" });
  expect(await billing.hold(again)).toEqual({ outcome: "held" });
  await billing.end(endOf(payer, again.generationId, undefined));
  await billing.end(endOf(known, id, undefined));
  await presence.stop();
});

test("a hold that ends during a search for abandoned holds is not reported as released", async () => {
  const billing = serverOf("looking");
  const released: number[] = [];
  const presence = presenceOf("looking", {
    release: async (hold) => {
      await billing.end({ ...hold, charge: undefined });
      return await billing.end({ ...hold, charge: undefined });
    },
    onReleased: (holds) => released.push(holds),
  });
  const { payer } = await held("looking");
  await search(presence);
  expect([await heldOf(payer), released]).toEqual([0, []]);
});

test("heartbeats continue while a release waits", async () => {
  const billing = serverOf("waiting");
  const asked = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const presence = presenceOf("waiting", {
    release: async (hold) => {
      asked.resolve();
      await gate.promise;
      return await billing.end({ ...hold, charge: undefined });
    },
  });
  await held("waiting");
  await presence.start();
  await asked.promise;
  await store.owner`UPDATE vx.servers SET seen_at = 'epoch' WHERE id = 'waiting'`;
  const seen = async () => {
    const [row] = await store.owner`SELECT seen_at > 'epoch' AS seen FROM vx.servers WHERE id = 'waiting'`;
    expect(row?.seen).toBe(true);
  };
  await vi.waitFor(seen);
  gate.resolve();
  await presence.stop();
});

test("expired answers of a busy lane are deleted as fast as they arrive", async () => {
  const { accountId } = await createPayer(store.database, 0n);
  await store.owner`
    INSERT INTO vx.answers (lane, account_id, idempotency_key, digest, generation_id, answer, created_at)
    SELECT vx.lane_of(${accountId}), ${accountId}, n::text, '', '', '', now() - interval '25 hours'
    FROM generate_series(1, 2500) n`;
  const presence = presenceOf("cleaning", { isOpen: () => true });
  await search(presence);
  expect(await store.owner`SELECT FROM vx.answers WHERE account_id = ${accountId}`).toHaveLength(0);
});
