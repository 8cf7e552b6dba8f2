import { type CloudEvent, HTTP } from "cloudevents";
import { beforeAll, expect, test } from "vitest";
import { sendAnyJson } from "../support/any-json.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, useOperator, useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";

const app = useOwnApp({ env: { VX_EVENTS_DAYS: "2" } });
const operator = useOperator(app);
const key = useTestKey(app);
beforeAll(async () => {
  for (let i = 1; i <= 4; i++) {
    const amountMicros = BigInt(i);
    await operator.creditAccount({ accountId: key.accountId, amountMicros, reason: "test", idempotencyKey: `${i}` });
  }
});

const get = (query: string, secret = key.secret) => sendAnyJson(app.url, { verb: "GET", path: `/v1/events${query}`, secret });

type Body = { events: { id: string; type: string; seq: number; data: object }[]; next_after: string; has_more: boolean };
const list = async (query: string, secret?: string): Promise<Body> => (await get(query, secret)).body;
const refusal = async (query: string, secret?: string) => {
  const { status, body } = await get(query, secret);
  return { status, code: body.error.code, message: body.error.message };
};
const seqsOf = ({ events }: Body) => events.map(({ seq }) => seq);

test.each([
  ["", [1, 2, 3], [4, 5]],
  ["order=desc&", [5, 4, 3], [2, 1]],
])("GET /v1/events?%s: pages continue after the last event", async (order, one, two) => {
  const first = await list(`?${order}page_size=3`);
  expect(seqsOf(first)).toEqual(one);
  expect(first).toMatchObject({ has_more: true, next_after: first.events[2]?.id });
  const second = await list(`?${order}page_size=3&after=${first.next_after}`);
  expect([seqsOf(second), second.has_more]).toEqual([two, false]);
});

test("an empty page can be continued", async () => {
  const { next_after } = await list("");
  expect(await list(`?after=${next_after}`)).toEqual({ events: [], next_after, has_more: false });
});

test("with order=desc, types select events after another one", async () => {
  const [newest] = (await list("?order=desc&page_size=1")).events;
  const typed = await list(`?order=desc&types=credit.posted&page_size=2&after=${newest?.id}`);
  expect(typed).toMatchObject({ has_more: true, events: [{ seq: 4 }, { seq: 3 }] });
});

test("types select events, also in one parameter, and pages of them are full", async () => {
  const types = (query: string) => list(query).then(({ events }) => events.map(({ type }) => type));
  expect(await types("?types=key.created")).toEqual(["key.created"]);
  expect(await types("?types=key.created,credit.posted&page_size=2")).toEqual(["key.created", "credit.posted"]);
  expect(await types("?types=key.created&types=credit.posted")).toHaveLength(5);
  const page = await list("?types=credit.posted&page_size=4");
  expect(page).toMatchObject({ has_more: false, events: [{ seq: 2 }, { seq: 3 }, { seq: 4 }, { seq: 5 }] });
});

test("an event has exactly its fields, with the time of its id", async () => {
  const [event] = (await list("?types=key.created")).events;
  expect(event).toEqual({
    id: expect.stringMatching(/^evt_[0-9a-hjkmnp-tv-z]{26}$/),
    type: "key.created",
    created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    account_id: key.accountId,
    data: { key_id: key.id, name: "test" },
    seq: 1,
  });
});

test("an account sees only its own events", async () => {
  const other = await createTestKey(operator);
  expect((await list("", other.secret)).events).toHaveLength(1);
  const [foreign] = (await list("")).events;
  const message = "after: is not the id of an event of this account";
  expect(await refusal(`?after=${foreign?.id}`, other.secret)).toMatchObject({ status: 400, message });
  const ofTheFuture = ["7", "z"].map((digit) => `evt_${digit}${"z".repeat(25)}`);
  for (const id of ofTheFuture) expect(await refusal(`?after=${id}`)).toMatchObject({ status: 400 });
});

test.each([
  ["?after=evt_x", 'after: must be the id of an event: "evt_…", or "now"'],
  ["?after=gen_01kam4xxa5fzsbw0pdmm2h60vq", 'after: must be the id of an event: "evt_…", or "now"'],
  ["?after=evt_01kam4xxa5fzsbw0pdmm2h60vq&after=evt_x", "after: is given more than once"],
  ["?types=credit", /^types: must be among balance\.low, /],
  ["?types=", /^types: must be among /],
  ["?page_size=-1", /^page_size: /],
  ["?order=newest", /^order: /],
  ["?order=desc&after=now", 'after: must not be "now" with "desc"'],
])("GET /v1/events%s is refused", async (query, message) => {
  const answer = await refusal(query);
  expect(answer).toMatchObject({ status: 400, code: "invalid_argument" });
  if (typeof message === "string") expect(answer.message).toBe(message);
  else expect(answer.message).toMatch(message);
});

test("the official SDK of CloudEvents reads a batch of the same events", async () => {
  const accept = "application/cloudevents-batch+json";
  const response = await fetch(`${app.url}/v1/events?page_size=2`, { headers: { ...bearer(key.secret), accept } });
  const headers = Object.fromEntries(response.headers);
  const events = HTTP.toEvent<object>({ headers, body: await response.text() }) as CloudEvent<object>[];
  const own = await list("?page_size=2");
  expect(headers).toMatchObject({ "x-next-after": own.next_after, "x-has-more": "true", vary: "accept" });
  for (const event of events) expect(event.validate()).toBe(true);
  expect(events).toMatchObject(
    own.events.map(({ id, type, data, seq }) => ({ id, type, subject: key.accountId, data, sequence: String(seq) })),
  );
});

test("after the retention, events are deleted, numbers continue, and an old cursor has expired", async () => {
  const old = await createTestKey(operator);
  const { owner } = app.database;
  const id = `evt_${"01kam4xxa5fzsbw0pdmm2h60".slice(0, 24)}${old.accountId.slice(-2)}`;
  await owner`
    UPDATE vx.events SET created_at = created_at - interval '49 hours', id = ${id} WHERE account_id = ${old.accountId}`;
  expect((await list(`?after=${id}`, old.secret)).events).toEqual([]);
  await owner`SELECT vx.sweep_events(2, 10)`;
  expect((await list("", old.secret)).events).toEqual([]);
  expect(await refusal(`?after=${id}`, old.secret)).toMatchObject({ status: 410, code: "cursor_expired" });
  await operator.suspendAccount({ accountId: old.accountId, reason: "test" });
  expect((await list("", old.secret)).events).toMatchObject([{ type: "account.suspended", seq: 2 }]);
});

test("operators list the events of all accounts or of one, newest first", async () => {
  const own = await operator.listEvents({ accountId: key.accountId });
  expect(own.events.map(({ seq }) => Number(seq))).toEqual([5, 4, 3, 2, 1]);
  const first = await operator.listEvents({ accountId: key.accountId, pageSize: 2 });
  const next = await operator.listEvents({ accountId: key.accountId, pageToken: first.nextPageToken });
  expect(next.events.map(({ seq }) => Number(seq))).toEqual([3, 2, 1]);
  const keys = await operator.listEvents({ types: ["key.created"] });
  expect(new Set(keys.events.map(({ type }) => type))).toEqual(new Set(["key.created"]));
  expect(keys.events.map(({ accountId }) => accountId)).toContain(key.accountId);
  const times = keys.events.map(({ createdAt }) => createdAt?.seconds ?? 0n);
  expect(times).toEqual([...times].sort((one, other) => Number(other - one)));
});
