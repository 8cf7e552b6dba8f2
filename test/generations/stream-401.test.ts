import { expect, test } from "vitest";
import { silent, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../support/fake-upstreams/fake-upstream.ts";
import type { TestKey } from "../support/fixtures.ts";
import { type Generator, openGenerator, type Refused } from "../support/generators.ts";
import { REQUEST, useOwnMetered } from "../support/metered.ts";

const metered = useOwnMetered({ servers: 2 });

/** Reads a stream, and returns its content and its end. */
async function read(generator: Generator, secret: string, onPiece: (text: string) => void = () => undefined) {
  let text = "";
  try {
    for await (const { event } of generator.stream(REQUEST, { secret })) {
      if (event.case !== "delta") continue;
      text += event.value.content;
      onPiece(text);
    }
    return { text, error: undefined };
  } catch (error) {
    return { text, error: error as Refused };
  }
}

test("a revocation stops the running streams of the key on every server and charges the produced output", async () => {
  const key = await metered.payer(1_000n);
  const other = await metered.payer(1_000n);
  const streams = metered.apps.map((app) => {
    const generator = openGenerator(app.url);
    const running = Promise.withResolvers<void>();
    metered.upstream.next(silentAfter(2));
    const ended = read(generator, key.secret, () => running.resolve()).finally(() => generator.close());
    return { running: running.promise, ended };
  });
  await Promise.all(streams.map(({ running }) => running));
  await metered.operator.revokeKey({ keyId: key.id });
  for (const { text, error } of await Promise.all(streams.map(({ ended }) => ended))) {
    expect(text).toBe("Hello, ");
    expect(error).toMatchObject({ reason: "revoked_api_key", code: "unauthenticated" });
  }
  const rows = await metered.rows(key);
  expect(rows.map(({ output, reason }) => ({ output, reason }))).toEqual(
    Array(2).fill({ output: 3, reason: "Generation with fake: 9 tokens in, 3 tokens out (stopped, the API key was revoked)" }),
  );
  expect((await metered.account(key)).held).toBe(0);
  expect(await metered.account(other)).toEqual({ balance: 1_000, held: 0 });
});

test.each<[string, string, string, (key: TestKey) => Promise<unknown>]>([
  [
    "the suspension of the account",
    "account_suspended",
    "stopped, the account was suspended",
    ({ accountId }) => metered.operator.suspendAccount({ accountId, reason: "test" }),
  ],
  [
    "the loss of the scope",
    "insufficient_scope",
    "stopped, the API key lost its scope",
    ({ id }) => metered.operator.updateKey({ keyId: id, scopes: ["read"] }),
  ],
])("%s stops the running streams of a key, and a rotation does not", async (_, reason, text, withdraw) => {
  const key = await metered.payer(1_000n);
  const generator = openGenerator(metered.app.url);
  const running = Promise.withResolvers<void>();
  metered.upstream.next(silentAfter(2));
  const ended = read(generator, key.secret, () => running.resolve());
  await running.promise;
  await metered.operator.rotateKey({ keyId: key.id });
  await withdraw(key);
  expect((await ended).error).toMatchObject({ reason, code: "permission_denied" });
  generator.close();
  expect(await metered.rows(key)).toMatchObject([{ output: 3, reason: expect.stringContaining(text) }]);
  expect((await metered.account(key)).held).toBe(0);
});

test("a stream stopped before its first token gets a 401 that says that the input is charged", async () => {
  const key = await metered.payer(1_000n);
  const generator = openGenerator(metered.app.url);
  const { upstream } = metered;
  const before = upstream.calls.length;
  upstream.next(silent satisfies Behaviour);
  const ended = read(generator, key.secret);
  await upstream.until(({ calls }) => calls.length > before);
  await metered.operator.revokeKey({ keyId: key.id });
  const { error } = await ended;
  expect(error).toMatchObject({
    reason: "revoked_api_key",
    message: "The API key was revoked during the call. Usage until then is charged.",
  });
  expect(error?.headers["www-authenticate"]).toBe("Bearer");
  await upstream.until(({ calls }) => calls[before]?.ended === "left");
  expect(await metered.rows(key)).toMatchObject([{ input: 9, output: 0, amount: 9 }]);
  expect(await metered.account(key)).toEqual({ balance: 991, held: 0 });
  generator.close();
});
