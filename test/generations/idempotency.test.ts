import { describe, expect, test } from "vitest";
import { post } from "../support/any-json.ts";
import { refuse, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { type Generator, openGenerator } from "../support/generators.ts";
import { REQUEST, running, useOwnMetered } from "../support/metered.ts";
import { started } from "../support/started.ts";

// Each pair of calls is on two servers, which share only the database.
const metered = useOwnMetered({ servers: 2 });

/** All events of a stream as one value. */
async function whole(generator: Generator, key: TestKey, headers: Record<string, string>, request = REQUEST) {
  let text = "";
  for await (const { event } of generator.stream(request, { secret: key.secret, headers })) {
    if (event.case === "delta") text += event.value.content;
    else return { text, ...event.value };
  }
  return undefined;
}

const calls = {
  unary: (generator: Generator, key: TestKey, headers: Record<string, string>, request = REQUEST) =>
    generator.generate(request, { secret: key.secret, headers }),
  stream: whole,
};

const REUSED = { reason: "idempotency_key_reused", code: "invalid_argument" };

const names = [
  ["bare", { "idempotency-key": "my key" }],
  ["quoted", { "idempotency-key": '"my key"' }],
  ["in gRPC's metadata", { request_id: "my key" }],
] as const;

const [here, there] = [0, 1].map((i) => started(() => openGenerator(metered.apps[i]?.url ?? ""))) as [Generator, Generator];

describe.each(["unary", "stream"] as const)("%s", (kind) => {
  const call = calls[kind];

  test("the same key and payload get the same response and one charge on every server", async () => {
    const key = await metered.payer(1_000n);
    const before = metered.upstream.calls.length;
    const first = await call(here, key, names[0][1]);
    for (const [name, headers] of names) expect(await call(there, key, headers), name).toEqual(first);
    expect(metered.upstream.calls).toHaveLength(before + 1);
    expect(await metered.rows(key)).toHaveLength(1);
    expect(await metered.account(key)).toEqual({ balance: 981, held: 0 });
  });

  test("a retry during the call gets 409; another payload gets 422", async () => {
    const key = await metered.payer(1_000n);
    const headers = { "idempotency-key": "one" };
    const { end } = await running(metered, () => call(here, key, headers));
    const other = { ...REQUEST, maxTokens: 11 };
    await expect(call(there, key, headers)).rejects.toMatchObject({ reason: "idempotency_in_progress", code: "aborted" });
    await expect(call(there, key, headers, other)).rejects.toMatchObject(REUSED);
    await end();
    await expect(call(there, key, headers, other)).rejects.toMatchObject(REUSED);
    // Another account can use the same key.
    expect(await call(there, await metered.payer(1_000n), headers, other)).toBeDefined();
    expect(await metered.rows(key)).toHaveLength(1);
  });

  test("the key of a call without output can be used again", async () => {
    const key = await metered.payer(1_000n);
    const headers = { "idempotency-key": "one" };
    metered.upstream.next(refuse(400));
    await expect(call(here, key, headers)).rejects.toMatchObject({ reason: "upstream_error" });
    expect(await call(there, key, headers)).toBeDefined();
    expect(await metered.rows(key)).toHaveLength(1);
  });
});

/** Reads a stream to its error, and returns the delivered content. */
async function cut(generator: Generator, secret: string, headers: Record<string, string>) {
  let text = "";
  try {
    for await (const { event } of generator.stream(REQUEST, { secret, headers }))
      if (event.case === "delta") text += event.value.content;
    return { text, error: undefined };
  } catch (error) {
    return { text, error };
  }
}

test("the replay of a stream whose key was revoked does not report the valid key as revoked", async () => {
  const key = await metered.payer(1_000n);
  const valid = await createTestKey(metered.operator, { accountId: key.accountId });
  const headers = { "idempotency-key": "revoked" };
  const before = metered.upstream.calls.length;
  metered.upstream.next(silentAfter(2));
  const running = cut(here, key.secret, headers);
  await metered.upstream.until(({ calls }) => calls[before]?.pieces === 2);
  await metered.operator.revokeKey({ keyId: key.id });
  expect((await running).error).toMatchObject({ reason: "revoked_api_key" });
  await metered.settled();
  const { error, text } = await cut(there, valid.secret, headers);
  expect(text).toBe("Hello, ");
  const message = expect.stringContaining("its API key was revoked");
  expect(error).toMatchObject({ reason: "generation_interrupted", message });
  expect(await metered.rows(key)).toHaveLength(1);
});

describe("the key itself", () => {
  test.each([
    ["255 characters", "k".repeat(255), true],
    ["255 characters in quotes", `"${"k".repeat(255)}"`, true],
    ["256 characters", "k".repeat(256), false],
    ["256 characters in quotes", `"${"k".repeat(256)}"`, false],
    ["an empty one", '""', false],
    ["one that is no ASCII", "schl\u00fcssel", false],
  ])("%s", async (_name, value, isAccepted) => {
    const key = await metered.payer(1_000n);
    const headers = { "idempotency-key": value };
    const answered = here.generate(REQUEST, { secret: key.secret, headers });
    if (isAccepted) expect(await answered).toMatchObject({ balanceMicros: 981n });
    else await expect(answered).rejects.toMatchObject({ reason: "invalid_argument" });
  });

  test("two different keys are rejected and nothing runs", async () => {
    const key = await metered.payer(1_000n);
    const headers = { "idempotency-key": "one", request_id: "two" };
    const refused = { reason: "invalid_argument" };
    await expect(here.generate(REQUEST, { secret: key.secret, headers })).rejects.toMatchObject(refused);
    expect(await metered.rows(key)).toEqual([]);
  });

  test("belongs to one method: unary, streamed and chat calls with the same messages are different payloads", async () => {
    const { model, messages } = REQUEST;
    const forms = ["/v1/generate", "/v1/chat/completions"].flatMap((path) =>
      [false, true].map((stream) => [path, stream] as const),
    );
    const key = await metered.payer(10_000n);
    for (const [i, form] of forms.entries()) {
      for (const other of [form, ...forms]) {
        const body = { model, messages, max_tokens: 10, stream: other[1] };
        const { status } = await post(metered.app, key, other[0], body, { "idempotency-key": `key ${i}` });
        expect([form, other, status]).toEqual([form, other, other === form ? 200 : 422]);
      }
    }
  });

  test("expires after 24 hours", async () => {
    const key = await metered.payer(1_000n);
    const options = { secret: key.secret, headers: { "idempotency-key": "old" } };
    const first = await here.generate(REQUEST, options);
    await metered.app.database.owner`
      UPDATE vx.answers SET created_at = created_at - interval '23 hours 59 minutes' WHERE account_id = ${key.accountId}`;
    expect((await here.generate(REQUEST, options)).id).toBe(first.id);
    await metered.app.database.owner`
      UPDATE vx.answers SET created_at = created_at - interval '1 minute' WHERE account_id = ${key.accountId}`;
    expect((await here.generate(REQUEST, options)).id).not.toBe(first.id);
  });
});
