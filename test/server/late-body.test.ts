// The body of a metered call arrives after its head was admitted, and meanwhile its key has changed.

import { beforeEach, expect, test, vi } from "vitest";
import { policiesOf } from "../../src/rules/policy.ts";
import { developerServices } from "../../src/server/services.ts";
import { envelope } from "../../src/server/wire/rpc.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { CHEAP_MODEL, METERED_SURFACES, SANDBOX_MODEL, useMetered, VECTOR_MODEL } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";
import { type RawAnswer, reasonsIn, sendHttp1, sendHttp2 } from "../support/raw.ts";

const metered = useMetered();
let payer: TestKey;
let key: TestKey;
beforeEach(async () => {
  payer = await metered.payer(1_000_000n);
  key = await createTestKey(metered.operator, { accountId: payer.accountId });
});

const PROMPT = { model: SANDBOX_MODEL, messages: [{ role: "user", content: "hi" }], maxTokens: 10 };
const UNARY = "/vx.v1.GenerateService/Generate";
const STREAM = "/vx.v1.GenerateService/StreamGenerate";

type Request = { readonly send: typeof sendHttp1; readonly path: string; readonly type: string; readonly body: object };
const request = (send: typeof sendHttp1, path: string, type: string, body: object = PROMPT): Request => ({
  send,
  path,
  type,
  body,
});

const RPCS: readonly [string, Request][] = [
  ["gRPC", request(sendHttp2, UNARY, "application/grpc+json")],
  ["a stream of gRPC", request(sendHttp2, STREAM, "application/grpc+json")],
  ["gRPC-Web", request(sendHttp1, UNARY, "application/grpc-web+json")],
  ["a stream of gRPC-Web", request(sendHttp1, STREAM, "application/grpc-web+json")],
  ["Connect", request(sendHttp1, UNARY, "application/json")],
  ["Connect over HTTP/2", request(sendHttp2, UNARY, "application/json")],
  ["a stream of Connect", request(sendHttp1, STREAM, "application/connect+json")],
  ["Connect's own handler", request(sendHttp1, UNARY, "application/json;charset=utf-8")],
  ["REST over HTTP/2", request(sendHttp2, "/v1/generate", "application/json")],
];
const REST = METERED_SURFACES.map(([path, body]): [string, Request] => [
  `${"stream" in body ? "a stream of " : ""}POST ${path}`,
  request(sendHttp1, path, "application/json", body),
]);

/** Sends a call whose body arrives when the promise resolves. */
function callOf({ send, path, type, body }: Request, arrival: Promise<unknown>): Promise<RawAnswer> {
  const json = Buffer.from(JSON.stringify(body));
  const bytes = /grpc|connect/.test(type) ? envelope(0, json) : json;
  // The answers of two calls have the same request id.
  const headers = { ...bearer(key.secret), "content-type": type, te: "trailers", "x-request-id": "req_late" };
  return send(metered.app.url, { path, headers, body: arrival.then(() => bytes) });
}

/** How often the key was admitted to a metered method, this or last minute. */
async function slotsUsed(): Promise<number> {
  const [window] = await metered.app.database.owner<{ used: number }[]>`
    SELECT used FROM vx.key_minutes WHERE key_id = ${key.id}`;
  return window?.used ?? 0;
}

/** Sends a call whose body arrives after the change, which is made when the call is admitted. */
async function lateCall(of: Request, change: () => Promise<unknown>): Promise<RawAnswer> {
  expect(await slotsUsed()).toBe(0);
  const arrival = Promise.withResolvers<void>();
  const answer = callOf(of, arrival.promise);
  await vi.waitFor(async () => expect(await slotsUsed()).toBe(1), { interval: 5 });
  await change();
  arrival.resolve();
  return await answer;
}

/** What a client sees of an answer, apart from the time and the window of the key. */
function seen({ status, headers, body }: RawAnswer): object {
  const others = Object.entries(headers).filter(([name]) => !/ratelimit|^date$/.test(name));
  return { status, headers: Object.fromEntries(others), body: body.toString("latin1") };
}

/** Nothing is held, and so many calls are charged. */
async function expectCharged(calls: number): Promise<void> {
  await metered.settled();
  expect((await metered.account(payer)).held).toBe(0);
  expect(await metered.rows(payer)).toHaveLength(calls);
}

const setKey = (changes: object, paths: string[]) => () =>
  metered.operator.updateKey({ keyId: key.id, ...changes, updateMask: { paths } });
const rotate = (overlapSeconds: number) => () => metered.operator.rotateKey({ keyId: key.id, overlapSeconds });
const setModels = (models: string[]) => setKey({ models }, ["models"]);
const setAddresses = (allowedCidrs: string[]) => setKey({ allowedCidrs }, ["allowed_cidrs"]);
const suspend = () => metered.operator.suspendAccount({ accountId: key.accountId, reason: "test" });

const close = () => metered.operator.closeAccount({ accountId: key.accountId, reason: "test", balance: "written_off" });

const WITHDRAWALS: readonly [string, string, () => Promise<unknown>][] = [
  ["is revoked", "revoked_api_key", () => metered.operator.revokeKey({ keyId: key.id })],
  ["is rotated without an overlap", "expired_api_key", rotate(0)],
  ["expires", "expired_api_key", () => metered.app.database.owner`UPDATE vx.keys SET expires_at = now() WHERE id = ${key.id}`],
  ["is of an account that is suspended", "account_suspended", suspend],
  ["is of an account that is closed", "revoked_api_key", close],
  ["loses its scope", "insufficient_scope", setKey({ scopes: ["read"] }, ["scopes"])],
  ["gets other address ranges", "address_not_allowed", setAddresses(["192.0.2.0/24"])],
  ["may no longer use the model", "model_not_allowed", setModels([CHEAP_MODEL])],
];

const [FIRST] = REST as [[string, Request]];
const [REVOKED] = WITHDRAWALS as [(typeof WITHDRAWALS)[number]];
const WITHOUT_MODEL = WITHDRAWALS.at(-1) as typeof REVOKED;

async function expectRefused(of: Request, [, reason, change]: typeof REVOKED): Promise<void> {
  const late = await lateCall(of, change);
  expect(reasonsIn(late)).toContain(reason);
  expect(seen(late)).toEqual(seen(await callOf(of, Promise.resolve())));
  await expectCharged(0);
}

test.each(WITHDRAWALS)("a late body is refused as a new call if its key %s", async (...row) => {
  await expectRefused(FIRST[1], row);
});

// The right to the model is proved elsewhere than the others.
test.each([...RPCS, ...REST.slice(1)])("a late body over %s, %o, is refused as a new call", async (_, of) => {
  await expectRefused(of, WITHOUT_MODEL);
  key = await createTestKey(metered.operator, { accountId: payer.accountId });
  await expectRefused(of, REVOKED);
});

test("these are all metered methods", () => {
  const rpcs = [...policiesOf(developerServices)].filter(([, { metered: isMetered }]) => isMetered);
  const paths = new Set(REST.map(([, { path }]) => path).filter((path) => !path.startsWith("/anthropic/")));
  const unary = rpcs.filter(([{ methodKind }]) => methodKind === "unary");
  expect(unary).toHaveLength(paths.size);
  const streams = REST.filter(([name]) => name.startsWith("a stream"));
  expect(rpcs.length - unary.length).toBe(streams.length);
});

test.each<[string, () => Promise<unknown>]>([
  ["is rotated with an overlap", rotate(60)],
  ["gets address ranges that contain the caller's address", setAddresses(["127.0.0.0/8", "::1/128"])],
  ["may use only the models of the call", setModels([SANDBOX_MODEL, VECTOR_MODEL])],
  ["keeps the scope of the call", setKey({ scopes: ["generate"] }, ["scopes"])],
  [
    "is of an account that is suspended and resumed",
    async () => {
      await suspend();
      await metered.operator.resumeAccount({ accountId: key.accountId, reason: "test" });
    },
  ],
])("a call with a late body runs if its key %s, and takes one slot of the window", async (_, change) => {
  const answers = [];
  for (const [, of] of [...RPCS.slice(0, 1), ...REST.slice(0, 2)]) {
    key = await createTestKey(metered.operator, { accountId: payer.accountId });
    answers.push(await lateCall(of, change));
    const [window] = await metered.app.database.owner`SELECT used FROM vx.key_minutes WHERE key_id = ${key.id}`;
    expect(window).toEqual({ used: 1 });
  }
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  await expectCharged(3);
});

test("a call with the previous secret runs during the overlap, and not after another rotation", async () => {
  const [, of] = REST[0] as [string, Request];
  await rotate(60)();
  expect(await lateCall(of, async () => undefined)).toMatchObject({ status: 200 });
  key = await createTestKey(metered.operator, { accountId: payer.accountId });
  await rotate(60)();
  expect(await lateCall(of, rotate(60))).toMatchObject({ status: 401 });
  await expectCharged(1);
});

test("a call with a late body is charged at the prices of its account that apply when it starts", async () => {
  const [, of] = REST[0] as [string, Request];
  const costOf = ({ body }: RawAnswer): number => JSON.parse(body.toString()).usage.cost_micros;
  const change = { case: "discountBps" as const, value: 5_000 };
  const late = await lateCall(of, () => metered.operator.setAccountPrices({ accountId: key.accountId, reason: "test", change }));
  const discounted = costOf(await callOf(of, Promise.resolve()));
  expect(costOf(late)).toBe(discounted);
  await metered.operator.setAccountPrices({ accountId: key.accountId, reason: "test" });
  expect(costOf(await callOf(of, Promise.resolve()))).toBeGreaterThan(discounted);
});
