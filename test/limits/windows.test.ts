import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import type { Database } from "../../src/database/driver/database.ts";
import { fingerprintOf, generateKey, laneOfKey } from "../../src/domain/credentials.ts";
import type { Scope } from "../../src/domain/scope.ts";
import { type Admission, type AdmissionRequest, Admitter } from "../../src/keys/admit.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { bearer, type Caller, type ProtocolCase, protocols } from "../support/protocols.ts";
import { clock, openDatabase } from "../support/store.ts";

let caller: Caller;
let database: Database;
let admitter: Admitter;

const app = useTestApp();
const operator = useOperator(app);
beforeAll(() => {
  caller = (protocols[0] as ProtocolCase).open(app.url);
  database = openDatabase(app.database.address);
  admitter = new Admitter(database, { pipelines: 2, maxWaiting: 10_000, clocks: [clock] });
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(async () => {
  caller.close();
  await database.close();
});

/** What is left after each of some calls, or why it is refused. */
async function take(secret: string, calls: number) {
  const left: (string | undefined)[] = [];
  for (let i = 0; i < calls; i++) {
    const outcome = await caller.call(LedgerService.method.listEntries, {}, bearer(secret));
    left.push(outcome.ok ? outcome.headers["x-ratelimit-remaining-requests"] : outcome.reason);
  }
  return left;
}

/** A call of the key, by default one that counts for its limit. */
function admit(secret: string, changes: Partial<AdmissionRequest> = {}): Promise<Admission> {
  const usual = { scope: "read", limited: true, address: "127.0.0.1", whileSuspended: false } as const;
  return admitter.admit({ lane: laneOfKey(secret), fingerprint: fingerprintOf(secret), ...usual, ...changes });
}

const shiftWindow = (id: string, minutes: number) => app.database.owner`
  UPDATE vx.key_minutes SET minute = minute + ${minutes} WHERE key_id = ${id}`;

const RESTART = "counting restarts in the current minute, with what was used";

test.each([
  { ahead: 1, after: "calls count in the later minute, and the retry delay is 60 s" },
  { ahead: 2, after: RESTART },
  { ahead: 525_600, after: RESTART },
])("after the clock was set back $ahead minutes, $after", async ({ ahead }) => {
  await withinOneMinute(async () => {
    const { id, secret } = await createTestKey(operator, { rateLimitRpm: 3 });
    const call = () => caller.call(LedgerService.method.listEntries, {}, bearer(secret));
    expect((await call()).headers["x-ratelimit-remaining-requests"]).toBe("2");
    const before = await minuteOf(id);
    await shiftWindow(id, ahead);
    for (const remaining of [1, 0, undefined]) {
      const atMost = secondsToNextMinute();
      const { ok, headers } = await call();
      const left = Number(/t=(\d+)$/.exec(headers.ratelimit ?? "")?.[1]);
      expect(ok).toBe(remaining !== undefined);
      expect(headers.ratelimit).toBe(`"rpm";r=${remaining ?? 0};t=${left}`);
      expect(headers["x-ratelimit-reset-requests"]).toBe(`${left}s`);
      expect(headers["retry-after"]).toBe(remaining === undefined ? String(left) : undefined);
      expect(left).toBeLessThanOrEqual(ahead === 1 ? 60 : atMost);
      expect(left).toBeGreaterThanOrEqual(ahead === 1 ? 60 : secondsToNextMinute());
    }
    expect(await minuteOf(id)).toBe(Number(before) + (ahead === 1 ? 1 : 0));
  });
});

test("after the clock was set back, an exhausted key has its whole limit in the next minute", async () => {
  await withinOneMinute(async () => {
    const { id, secret } = await createTestKey(operator, { rateLimitRpm: 2 });
    expect(await take(secret, 2)).toEqual(["1", "0"]);
    await shiftWindow(id, 30);
    expect(await take(secret, 1)).toEqual(["rate_limit_exceeded"]);
    await shiftWindow(id, -1);
    expect(await take(secret, 3)).toEqual(["1", "0", "rate_limit_exceeded"]);
  });
});

test("exactly the limit is admitted of ten times as many calls around a step of the clock", async () => {
  await withinOneMinute(async () => {
    const { id, secret } = await createTestKey(operator, { rateLimitRpm: 50 });
    const all = (count: number) => Promise.all(Array.from({ length: count }, () => admit(secret)));
    const before = await all(20);
    await shiftWindow(id, 30);
    const after = await all(480);
    const admitted = [...before, ...after].filter(({ outcome }) => outcome === "admitted");
    expect(admitted).toHaveLength(50);
    const remaining = admitted.map((one) => ("window" in one ? one.window?.remaining : undefined));
    expect(remaining.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });
});

function secondsToNextMinute(): number {
  return 60 - (Math.floor(Date.now() / 1_000) % 60);
}

async function minuteOf(id: string): Promise<number | undefined> {
  const [row] = await app.database.owner<{ minute: number }[]>`SELECT minute FROM vx.key_minutes WHERE key_id = ${id}`;
  return row?.minute;
}

test("the minute is taken from the clock of the database, not of the server", async () => {
  const far = await createTestKey(operator);
  const past = await createTestKey(operator);
  const { owner } = app.database;
  await owner`UPDATE vx.keys SET expires_at = clock_timestamp() + interval '1 hour' WHERE id = ${far.id}`;
  await owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${past.id}`;
  for (const years of [-1, 1]) {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + years * 365 * 86_400_000 });
    const endings = [];
    for (const { secret } of [far, past]) {
      const outcome = await caller.call(MeService.method.getMe, {}, bearer(secret));
      endings.push(outcome.ok ? "ok" : outcome.reason);
    }
    vi.useRealTimers();
    expect(endings).toEqual(["ok", "expired_api_key"]);
  }
});

test("one batch admits calls of many keys, scopes and states, each key in the order of arrival", async () => {
  await withinOneMinute(async () => {
    const narrow = await createTestKey(operator, { scopes: ["read"], rateLimitRpm: 3 });
    const revoked = await createTestKey(operator);
    await operator.revokeKey({ keyId: revoked.id });
    const admissions = await Promise.all([
      admit(narrow.secret),
      admit(narrow.secret, { scope: "keys" }),
      admit(revoked.secret),
      admit(narrow.secret, { scope: undefined, limited: false }),
      admit(narrow.secret),
      admit(generateKey(1, randomBytes).secret),
      admit(narrow.secret),
      admit(narrow.secret),
    ]);
    expect(admissions.map(tell)).toEqual([
      "admitted, 2 left",
      "out_of_scope, 2 left",
      "revoked",
      "admitted",
      "admitted, 1 left",
      "unknown",
      "admitted, 0 left",
      "rate_limited, 0 left",
    ]);
  });
});

test("calls refused because the account is suspended take no slot and do not count as use of the key", async () => {
  await withinOneMinute(async () => {
    const { id, accountId, secret } = await createTestKey(operator, { rateLimitRpm: 3, scopes: ["read", "generate"] });
    await operator.suspendAccount({ accountId, reason: "test" });
    const suspended = (scope: Scope, whileSuspended: boolean) => admit(secret, { scope, whileSuspended });
    const lastUse = async () => {
      const { apiKeys } = await operator.listKeys({ accountId });
      return apiKeys.find((key) => key.id === id)?.lastUsedAt;
    };
    const refused = await Promise.all(Array.from({ length: 10 }, (_, i) => suspended(i % 2 ? "read" : "generate", false)));
    expect(refused.map(tell)).toEqual(Array(10).fill("suspended"));
    expect(await lastUse()).toBeUndefined();
    const calls = [
      suspended("read", false),
      suspended("read", true),
      suspended("keys", true),
      suspended("read", true),
      suspended("keys", false),
    ];
    const told = ["suspended", "admitted, 2 left", "out_of_scope, 2 left", "admitted, 1 left", "suspended"];
    expect((await Promise.all(calls)).map(tell)).toEqual(told);
    const used = await lastUse();
    expect(used).toBeDefined();
    expect((await Promise.all([suspended("generate", false), suspended("keys", true)])).map(tell)).toEqual([
      "suspended",
      "out_of_scope, 1 left",
    ]);
    expect(await lastUse()).toEqual(used);
    await shiftWindow(id, -1);
    expect(tell(await suspended("read", false))).toBe("suspended");
    expect(await lastUse()).toEqual(used);
    // A call of a method that is not limited is recorded once a minute.
    expect(tell(await admit(secret, { scope: undefined, limited: false, whileSuspended: true }))).toBe("admitted");
    expect(await lastUse()).not.toEqual(used);
    await operator.resumeAccount({ accountId, reason: "test" });
    expect((await Promise.all([1, 2, 3, 4].map(() => admit(secret)))).map(tell)).toEqual([
      "admitted, 2 left",
      "admitted, 1 left",
      "admitted, 0 left",
      "rate_limited, 0 left",
    ]);
  });
});

test("calls that take no slot write a window once a minute", async () => {
  await withinOneMinute(async () => {
    const { id, secret } = await createTestKey(operator);
    const use = async () => expect((await admit(secret, { scope: undefined, limited: false })).outcome).toBe("admitted");
    // A row that was locked or written has another xmax or another place.
    const versionOf = async () => {
      const [row] = await app.database.owner<{ version: string }[]>`
        SELECT format('%s %s %s', xmin, xmax, ctid) AS version FROM vx.key_minutes WHERE key_id = ${id}`;
      return row?.version;
    };
    await use();
    const first = await versionOf();
    expect(first).toBeDefined();
    await use();
    await Promise.all([use(), use()]);
    expect(await versionOf()).toBe(first);
    const minute = await minuteOf(id);
    await shiftWindow(id, -1);
    await use();
    expect(await minuteOf(id)).toBe(minute);
  });
});

test("3,000 concurrent calls over many batches give each key exactly its limit", async () => {
  await withinOneMinute(async () => {
    const limits = [1, 10, 100, 700];
    const keys = await Promise.all(limits.map((rateLimitRpm) => createTestKey(operator, { rateLimitRpm })));
    const admissions = await Promise.all(
      Array.from({ length: 3_000 }, async (_, i) => {
        const { secret } = keys[i % keys.length] as { secret: string };
        return { key: i % keys.length, outcome: (await admit(secret, { scope: "generate" })).outcome };
      }),
    );
    const admitted = limits.map((_, key) => admissions.filter((one) => one.key === key && one.outcome === "admitted").length);
    expect(admitted).toEqual(limits);
  });
});

function tell(admission: Admission): string {
  const window = "window" in admission ? admission.window : undefined;
  return window ? `${admission.outcome}, ${window.remaining} left` : admission.outcome;
}
