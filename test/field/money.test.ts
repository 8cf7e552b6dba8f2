import { create, type DescMethod } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { policiesOf } from "../../src/rules/policy.ts";
import { httpBindings } from "../../src/server/rest/http-rule.ts";
import { developerServices } from "../../src/server/services.ts";
import { flood, hangUpAfter, refuse, reply, replyWhen, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import { type Generator, type GeneratorCase, generators, type Refused } from "../support/generators.ts";
import { CHEAP_MODEL, MODEL, REQUEST, useOwnMetered, VECTOR_MODEL } from "../support/metered.ts";
import { bearer, protocols } from "../support/protocols.ts";

/**
 * Billing defects known from comparable products. Each test states the behaviour that excludes one of them.
 */

let clients: Generator[];

const metered = useOwnMetered({ servers: 2 });
const { open } = generators.find(({ name }) => name === "Connect binary over HTTP/2") as GeneratorCase;
beforeAll(() => {
  clients = metered.apps.map(({ url }) => open(url));
});
afterAll(() => {
  for (const client of clients) client.close();
});

/** Without text the counted input equals its upper bound, so each call holds exactly EMPTY_HELD. */
const EMPTY = { model: MODEL, messages: [{ role: "user", content: "" }], maxTokens: 10 };
const EMPTY_HELD = 24;
const EMPTY_COST = 12;

const outcomeOf = (call: Promise<unknown>) =>
  call.then(
    () => "ok",
    (error: Refused) => error.reason,
  );

const sseDelta = (text: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`;

test("with funds for 10 of 100 concurrent calls, exactly 10 run", async () => {
  const funded = 10;
  const key = await metered.payer(BigInt(funded * EMPTY_HELD + EMPTY_HELD - 1));
  const before = metered.upstream.executions.length;
  const rest = Promise.withResolvers<void>();
  metered.upstream.always(replyWhen(rest.promise));
  let refused = 0;
  const calls = Array.from({ length: 10 * funded }, async (_, i) => {
    const client = clients[i % clients.length] as Generator;
    const outcome = await outcomeOf(
      i % 3 === 0
        ? (async () => {
            for await (const _ of client.stream(EMPTY, { secret: key.secret }));
          })()
        : client.generate(EMPTY, { secret: key.secret }),
    );
    // No hold ends before every call is admitted or rejected.
    if (outcome === "insufficient_balance" && ++refused === 9 * funded) rest.resolve();
    return outcome;
  });
  const outcomes = await Promise.all(calls);
  metered.upstream.always(reply());
  expect(outcomes.filter((outcome) => outcome === "ok")).toHaveLength(funded);
  expect(outcomes.filter((outcome) => outcome === "insufficient_balance")).toHaveLength(9 * funded);
  expect(metered.upstream.executions.length - before).toBe(funded);
  const rows = await metered.rows(key);
  expect(rows.map(({ amount }) => amount)).toEqual(Array(funded).fill(EMPTY_COST));
  expect(await metered.account(key)).toEqual({ balance: funded * EMPTY_COST + EMPTY_HELD - 1, held: 0 });
});

test("a stream without end is cut, and its charge is at most the hold", async () => {
  const key = await metered.payer(BigInt(EMPTY_HELD));
  metered.upstream.next(flood(() => sseDelta("word ".repeat(100)), 50_000_000));
  const client = clients[0] as Generator;
  let balance: bigint | undefined;
  for await (const { event } of client.stream(EMPTY, { secret: key.secret }))
    if (event.case === "done") balance = event.value.balanceMicros;
  expect(balance).toBeGreaterThanOrEqual(0n);
  expect((await metered.rows(key))[0]).toMatchObject({ output: 10 });
  expect(await metered.account(key)).toEqual({ balance: 0, held: 0 });
});

test("after every kind of failure the whole balance can be spent", async () => {
  const key = await metered.payer(1_000n);
  const failures = [refuse(500), refuse(429), hangUpAfter(0), hangUpAfter(2), silentAfter(1), silentAfter(0)];
  for (const [i, behaviour] of failures.entries()) {
    const { upstream } = metered;
    // A retried call to the upstream fails again.
    upstream.always(behaviour);
    const before = upstream.calls.length;
    const left = new AbortController();
    const options = { secret: key.secret, signal: left.signal };
    const call = outcomeOf((clients[i % clients.length] as Generator).generate(REQUEST, options));
    if (behaviour === failures[4] || behaviour === failures[5]) {
      await upstream.until(({ calls }) => calls.length > before);
      left.abort();
    }
    await call;
  }
  metered.upstream.always(reply());
  await metered.settled();
  const { balance, held } = await metered.account(key);
  expect(held).toBe(0);
  const all = { ...EMPTY, maxTokens: Math.floor((balance - 4) / 2) };
  expect(await (clients[0] as Generator).generate(all, { secret: key.secret })).toBeDefined();
});

test("without funds each metered method returns 402 and sends nothing to the upstream", async () => {
  const key = await metered.payer(0n);
  const before = metered.upstream.calls.length;
  const policies = policiesOf(developerServices);
  const isMetered = (method: DescMethod) => policies.get(method)?.metered === true;
  const methods = developerServices.flatMap((service) => service.methods).filter(isMetered);
  const messages = [{ role: "user", content: "hi" }];
  const bodies: Record<string, object> = {
    "/v1/generate": { messages },
    "/v1/chat/completions": { messages },
    "/v1/responses": { input: "hi" },
    "/v1/messages": { messages, max_tokens: 10 },
    "/v1/completions": { prompt: "hi" },
    "/v1/embed": { model: VECTOR_MODEL, input: ["hi"] },
    "/v1/embeddings": { model: VECTOR_MODEL, input: "hi" },
  };
  for (const { verb, path, method, selectedBy } of methods.flatMap(httpBindings)) {
    const selected = selectedBy ? { [selectedBy.name]: true } : {};
    const answer = await fetch(`${metered.app.url}${path}`, {
      method: verb,
      headers: { "content-type": "application/json", ...bearer(key.secret) },
      body: JSON.stringify({ model: MODEL, ...bodies[path.replace("/anthropic", "")], ...selected }),
    });
    expect([method.name, answer.status]).toEqual([method.name, 402]);
  }
  for (const client of clients) {
    expect(await outcomeOf(client.generate(REQUEST, { secret: key.secret }))).toBe("insufficient_balance");
    expect(await outcomeOf(client.stream(REQUEST, { secret: key.secret }).next())).toBe("insufficient_balance");
  }
  expect(metered.upstream.calls).toHaveLength(before);
});

test("each response, and the last event of each stream, contains the charge and the remaining balance", async () => {
  for (const client of clients) {
    const key = await metered.payer(1_000n);
    const said = { usage: { costMicros: 19n, cost: "$0.000019" } };
    expect(await client.generate(REQUEST, { secret: key.secret })).toMatchObject({ ...said, balanceMicros: 981n });
    let last: unknown;
    for await (const { event } of client.stream(REQUEST, { secret: key.secret })) last = event;
    expect(last).toMatchObject({ case: "done", value: { ...said, balanceMicros: 962n } });
    expect(await metered.account(key)).toEqual({ balance: 962, held: 0 });
  }
});

test("concurrent calls of one account share billing statements", async () => {
  const calls = 100;
  const key = await metered.payer(BigInt(calls * EMPTY_HELD));
  const statements = () => metered.metric('vx_batch_size_count\\{batcher="billing"\\}');
  // The metric does not exist before the first hold.
  const warm = await metered.payer(1_000n);
  for (const client of clients) await client.generate(EMPTY, { secret: warm.secret });
  const before = await statements();
  const outcomes = await Promise.all(
    Array.from({ length: calls }, (_, i) =>
      outcomeOf((clients[i % clients.length] as Generator).generate(EMPTY, { secret: key.secret })),
    ),
  );
  expect(new Set(outcomes)).toEqual(new Set(["ok"]));
  // Without batches, the holds and settlements would be 200 statements that wait for one row. Batches are
  // small here, because the callers share a process with the servers.
  expect((await statements()) - before).toBeLessThan(calls);
  expect(await metered.account(key)).toEqual({ balance: calls * (EMPTY_HELD - EMPTY_COST), held: 0 });
});

test("one idempotency key sent 100 times at once over two servers is charged once", async () => {
  const key = await metered.payer(1_000n);
  const before = metered.upstream.calls.length;
  const options = { secret: key.secret, headers: { "idempotency-key": "one" } };
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, i) => outcomeOf((clients[i % clients.length] as Generator).generate(REQUEST, options))),
  );
  expect(new Set(outcomes).has("ok")).toBe(true);
  expect(outcomes.every((outcome) => outcome === "ok" || outcome === "idempotency_in_progress")).toBe(true);
  expect(metered.upstream.calls).toHaveLength(before + 1);
  expect(await metered.rows(key)).toHaveLength(1);
});

test("the ledger row of a charge has the request, key, model, tokens and remaining balance", async () => {
  const key = await metered.payer(1_000n);
  const [client] = clients as [Generator];
  const headers = { "x-request-id": "ticket-4711" };
  const { id } = await client.generate(REQUEST, { secret: key.secret, headers });
  const caller = (protocols[0] as (typeof protocols)[number]).open(metered.app.url);
  const listed = await caller.call(
    LedgerService.method.listEntries,
    create(LedgerService.method.listEntries.input),
    bearer(key.secret),
  );
  caller.close();
  expect(listed).toMatchObject({
    ok: true,
    message: {
      entries: [
        {
          id: id.replace("gen_", "led_"),
          kind: "generation",
          amountMicros: -19n,
          balanceAfterMicros: 981n,
          reason: "Generation with fake: 11 tokens in, 4 tokens out",
          requestId: "ticket-4711",
          keyId: key.id,
          model: MODEL,
          inputTokens: 11n,
          outputTokens: 4n,
        },
        { kind: "credit" },
      ],
    },
  });
});

test("240 concurrent calls of 12 accounts over two servers cause no deadlock", async () => {
  const keys = await Promise.all(Array.from({ length: 12 }, () => metered.payer(100_000n)));
  const outcomes = await Promise.all(
    Array.from({ length: 240 }, (_, i) => {
      const client = clients[(i >> 1) % clients.length] as Generator;
      return outcomeOf(client.generate(EMPTY, { secret: (keys[i % 12] as (typeof keys)[number]).secret }));
    }),
  );
  expect(new Set(outcomes)).toEqual(new Set(["ok"]));
  for (const key of keys) {
    expect(await metered.rows(key)).toHaveLength(20);
    expect(await metered.account(key)).toEqual({ balance: 100_000 - 20 * EMPTY_COST, held: 0 });
  }
  const [row] = await metered.app.database.owner`
    SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()`;
  expect(row?.deadlocks).toBe(0);
});

test("ten calls of 2.666664 micros each cost exactly 30 micros", async () => {
  const key = await metered.payer(5_000n);
  const [client] = clients as [Generator];
  const request = { ...EMPTY, model: CHEAP_MODEL };
  for (let i = 0; i < 10; i++) await client.generate(request, { secret: key.secret });
  expect(await metered.account(key)).toEqual({ balance: 4_970, held: 0 });
});

test("after all of these tests vx audit finds no difference", async () => {
  const audit = await metered.operator.audit({});
  expect(audit.findings).toEqual([]);
  expect(audit.entries).toBeGreaterThan(300n);
});
