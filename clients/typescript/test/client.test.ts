// Runs against a server: VX_URL and VX_KEY name it, VX_FAULT_URL a proxy in front of it that fails on demand.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import * as vx from "vx-client";

const { env } = process;
/** Differs between runs against one server. */
const RUN = `ts-${process.version}-${Date.now()}`;
const MODEL = "vx-sandbox-small";
const client = new vx.Client();
const faulty = new vx.Client({ url: env.VX_FAULT_URL });
let calls = 0;

const asks = (content: string, model = MODEL) => ({ model, messages: [{ role: "user", content }] });

async function failure(call: () => PromiseLike<unknown>): Promise<vx.VxError> {
  const thrown = await call().then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof vx.VxError) return thrown;
  throw new Error("no VxError", { cause: thrown });
}

/** A header for the proxy, and the idempotency keys that the attempts of the call sent. */
function fault(parts: string) {
  const id = `${RUN}-${++calls}`;
  return {
    user: id,
    headers: { "x-fault": `id=${id};${parts}` },
    attempts: async () => (await (await fetch(`${env.VX_FAULT_URL}/attempts?id=${id}`)).json()) as (string | null)[],
  };
}

async function chargesOf(user: string): Promise<vx.LedgerEntry[]> {
  const charges: vx.LedgerEntry[] = [];
  for await (const entry of client.ledger.list({ kind: "generation" })) {
    if (entry.user === user) charges.push(entry);
  }
  return charges;
}

test("a reply has a text, and its cost is a bigint that the ledger repeats", async () => {
  const reply = await client.generate(asks("hello"));
  assert.match(reply.message?.content ?? "", /^This is a reply of the sandbox\./);
  assert.equal(typeof reply.usage?.costMicros, "bigint");
  const entry = await client.ledger.generation(reply.id);
  assert.equal(entry.amountMicros, -(reply.usage?.costMicros ?? 0n));
});

test("a reply, each part of it and the events of a stream can be written as JSON", async () => {
  const reply = await client.generate(asks("hello"));
  const { usage } = JSON.parse(JSON.stringify(reply));
  assert.equal(usage.costMicros, String(reply.usage?.costMicros));
  assert.deepEqual(JSON.parse(JSON.stringify(reply.usage)), usage);
  const events: string[] = [];
  for await (const event of client.stream(asks("hello"))) events.push(JSON.stringify(event));
  assert.ok(events.length > 1);
  assert.equal(JSON.parse(JSON.stringify(await client.me())).keyName, (await client.me()).keyName);
});

for (const content of ["hello", "[[reasoning=20]] hello", "[[tool]] hello", "[[tools=2 reasoning=8]] hello"]) {
  test(`the final response of a stream of "${content}" is the reply without a stream`, async () => {
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const input = {
      ...asks(content),
      tools: [{ name: "weather", parameters }],
      reasoningEffort: "low",
      maxTokens: 9_000,
    };
    const unary = await client.generate(input);
    const stream = client.stream(input);
    let deltas = 0;
    for await (const _ of stream) deltas++;
    assert.ok(deltas > 1);
    const streamed = await stream.finalResponse();
    const comparable = (reply: vx.GenerateResponse) => ({
      ...reply,
      id: "",
      balanceMicros: 0n,
      message: {
        ...reply.message,
        toolCalls: reply.message?.toolCalls.map((call) => ({ ...call, id: "" })),
        reasoning: reply.message?.reasoning.map(({ text }) => text),
      },
    });
    assert.deepEqual(comparable(streamed), comparable(unary));
  });
}

test("a reply with tool calls can be sent back with their results", async () => {
  const tools = [{ name: "weather" }];
  const first = await client.generate({ ...asks("How is the weather?"), tools, toolChoice: "required" });
  assert.equal(first.finishReason, "tool_calls");
  const { message } = first;
  assert.ok(message);
  const messages = [
    { role: "user", content: "How is the weather?" },
    message,
    ...message.toolCalls.map(({ id }) => ({ role: "tool", toolCallId: id, content: "sunny" })),
  ];
  const second = await client.generate({ model: MODEL, messages, tools });
  assert.equal(second.finishReason, "stop");
});

test("finalResponse reads a stream that was not iterated; a stream can be iterated once", async () => {
  const stream = client.stream(asks("hello"));
  assert.match((await stream.finalResponse()).message?.content ?? "", /^This is/);
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, TypeError);
});

test("leaving a stream ends the call, and it is charged for what was produced", async () => {
  const user = `${RUN}-left`;
  for await (const _ of client.stream({ ...asks("[[tokens=400 delay_ms=50]]"), user })) break;
  let charges: vx.LedgerEntry[] = [];
  while (charges.length === 0) charges = await chargesOf(user);
  assert.ok((charges[0]?.outputTokens ?? 0n) < 200n);
  assert.match(charges[0]?.reason ?? "", /disconnected/);
});

test("quotes, embeddings, models and the account are read", async () => {
  const quote = await client.quote(asks("hello"));
  assert.equal(quote.fits, true);
  assert.ok(quote.holdMicros > 0n);
  const { embeddings } = await client.embed({ model: "vx-sandbox-embed", input: ["a", "b"], dimensions: 8 });
  assert.deepEqual(
    embeddings.map(({ values }) => values.length),
    [8, 8],
  );
  assert.match((await client.me()).balance, /^\$\d/);
  assert.equal((await client.models.get(MODEL)).id, MODEL);
  const ids: string[] = [];
  for await (const { id } of client.models.list({ pageSize: 1 })) ids.push(id);
  assert.ok(ids.includes(MODEL) && ids.length >= 3);
  const rows: vx.UsageRow[] = [];
  for await (const row of client.usage({ groupBy: ["model"] })) rows.push(row);
  assert.ok(rows.some(({ model, costMicros }) => model === MODEL && costMicros > 0n));
});

test("keys are created, listed and revoked", async () => {
  const { apiKey, secret } = await client.keys.create({ name: "test", scopes: ["read"] });
  assert.match(secret, /^vx_live_/);
  assert.equal((await new vx.Client({ key: secret }).me()).keyName, "test");
  const id = apiKey?.id ?? "";
  assert.equal((await client.keys.get(id)).state, "active");
  const changed = await client.keys.update({
    keyId: id,
    name: "changed",
    limits: [{ metric: "cost", window: "day", amount: 5_000_000n }],
  });
  assert.equal(changed.name, "changed");
  const rotated = await client.keys.rotate({ keyId: id, overlapSeconds: 60 });
  assert.notEqual(rotated.secret, secret);
  const limits = await new vx.Client({ key: rotated.secret }).limits();
  assert.ok(limits.some(({ metric, remaining }) => metric === "cost" && remaining === 5_000_000n));
  assert.equal((await client.keys.revoke(id)).state, "revoked");
  const first = (await client.keys.list({ pageSize: 1 }).pages().next()).value;
  assert.equal(first?.items[0]?.id, id);
  const error = await failure(() => new vx.Client({ key: secret }).me());
  assert.ok(error instanceof vx.RevokedApiKeyError && error instanceof vx.AuthenticationError);
});

test("errors have the class of their reason, and what the server said", async () => {
  const invalid = await failure(() => client.generate({ ...asks("hello"), temperature: 3 }));
  assert.ok(invalid instanceof vx.InvalidArgumentError);
  assert.equal(invalid.fields[0]?.field, "temperature");
  assert.equal(invalid.code, "invalid_argument");
  assert.match(invalid.requestId ?? "", /^req_/);
  const broke = await failure(() => new vx.Client({ key: env.VX_BROKE_KEY }).generate(asks("hello")));
  assert.ok(broke instanceof vx.InsufficientBalanceError && broke instanceof vx.BillingError);
  assert.equal(broke.metadata.balance_micros, "0");
  const unknown = await failure(() => client.generate(asks("hello", "no-model")));
  assert.ok(unknown instanceof vx.ModelNotFoundError);
  const keyless = await failure(() => new vx.Client({ key: env.VX_NO_KEY }).me());
  assert.ok(keyless instanceof vx.InvalidApiKeyError);
  const broken = await failure(() => client.generate(asks("[[fail_after=0]]"), { maxRetries: 0 }));
  assert.ok(broken instanceof vx.UpstreamError && broken instanceof vx.ServerError);
});

test("a rate limit says when to retry, and a wait longer than the time limit is not begun", async () => {
  const limited = new vx.Client({ key: env.VX_LIMITED_KEY, timeoutMs: 1000 });
  const error = await failure(async () => {
    for (;;) await limited.models.get(MODEL);
  });
  assert.ok(error instanceof vx.RateLimitExceededError && error instanceof vx.RateLimitError);
  assert.ok((error.retryAfterSeconds ?? 0) >= 1);
});

test("a call that a running call refuses succeeds by itself, and an error has the limit that refused its call", async () => {
  const limitedKey = async (limit: { metric: string; window?: string; amount: bigint }) =>
    (await client.keys.create({ name: "limited", limits: [limit] })).secret;
  const slow = asks("[[tokens=2 delay_ms=400]]");
  const waiting = new vx.Client({ key: await limitedKey({ metric: "concurrent", amount: 1n }) });
  await Promise.all([waiting.generate(slow), waiting.stream(slow).finalResponse()]);
  const refused = await failure(() =>
    Promise.all([waiting.generate(slow, { maxRetries: 0 }), waiting.generate(slow, { maxRetries: 0 })]),
  );
  assert.ok(refused instanceof vx.ConcurrencyLimitReachedError);
  assert.equal(refused.retryAfterSeconds, 1);
  assert.equal(refused.limit?.resetsAt, undefined);
  assert.deepEqual([refused.limit?.metric, refused.limit?.held, refused.limit?.needed], ["concurrent", 1n, 1n]);

  const key = await limitedKey({ metric: "generations", window: "month", amount: 1n });
  const used = new vx.Client({ url: env.VX_FAULT_URL, key });
  await used.generate(asks("hello"));
  const { headers, attempts } = fault("times=0");
  const spent = await failure(() => used.generate(asks("hello"), { headers }));
  assert.equal((await attempts()).length, 1);
  assert.ok(spent instanceof vx.GenerationLimitExceededError);
  const { id, ownerId, resetsAt, ...limit } = spent.limit ?? assert.fail("no limit");
  assert.match(`${id} ${ownerId}`, /^lim_\w+ key_\w+$/);
  assert.ok(resetsAt !== undefined && resetsAt > new Date() && resetsAt.getUTCDate() === 1);
  assert.deepEqual(limit, {
    metric: "generations",
    window: "month",
    model: "",
    per: "",
    amount: 1n,
    spent: 1n,
    held: 0n,
    needed: 1n,
  });
  assert.equal((await failure(() => client.generate(asks("hello", "no-model")))).limit, undefined);
});

for (const { reason, code, name } of JSON.parse(env.VX_REASONS ?? "[]")) {
  test(`the reason ${reason} has the class ${name}`, async () => {
    const { headers } = fault(`times=9;reason=${reason}`);
    const error = await failure(() => faulty.me({ headers, maxRetries: 0 }));
    assert.deepEqual(
      { name: error.name, class: error.constructor.name, reason: error.reason, code: error.code },
      { name, class: name, reason, code },
    );
    assert.equal(error.requestId, "of-the-proxy");
  });
}

for (const kind of ["generate", "stream"] as const) {
  const call = (input: vx.GenerateInput & vx.StreamInput, options: vx.CallOptions) =>
    kind === "generate"
      ? faulty.generate(input, options)
      : faulty.stream(input, { ...options, idempotencyKey: randomUUID() }).finalResponse();

  for (const parts of ["status=503;retry-after=0", "lose=1", "reason=overloaded;retry-after=0"]) {
    test(`${kind}: after ${parts}, a retry with the same key succeeds and is charged once`, async () => {
      const { user, headers, attempts } = fault(parts);
      const reply = await call({ ...asks("[[tokens=5]]"), user }, { headers });
      assert.equal(reply.message?.content, "This is a reply of");
      const keys = await attempts();
      assert.equal(keys.length, 2);
      assert.equal(new Set(keys).size, 1);
      assert.ok(keys[0]);
      assert.deepEqual(
        (await chargesOf(user)).map(({ generationId }) => generationId),
        [reply.id],
      );
    });
  }

  test(`${kind}: after the last retry, the error is thrown; an error that no retry heals is thrown at once`, async () => {
    const down = fault("times=9;status=503;retry-after=0");
    const error = await failure(() => call(asks("hello"), { headers: down.headers }));
    assert.ok(error instanceof vx.ServerError);
    assert.equal((await down.attempts()).length, 3);
    const wrong = fault("times=9;reason=invalid_argument");
    await failure(() => call(asks("hello"), { headers: wrong.headers }));
    assert.equal((await wrong.attempts()).length, 1);
  });
}

for (const idempotencyKey of [undefined, `${RUN}-cut`]) {
  const kind = idempotencyKey ? "with" : "without";
  test(`a stream ${kind} a key that is cut in the middle throws, and is charged once`, async () => {
    const { user, headers, attempts } = fault("cut=120");
    const input = { ...asks("[[tokens=40]] hello"), user };
    const stream = faulty.stream(input, { headers, idempotencyKey });
    const texts: string[] = [];
    const error = await failure(async () => {
      for await (const text of stream.texts()) texts.push(text);
    });
    assert.ok(error instanceof vx.ConnectionError);
    assert.equal(error.idempotencyKey, idempotencyKey);
    assert.ok(texts.length > 0);
    assert.equal(stream.partialMessage?.content, texts.join(""));
    assert.deepEqual(await attempts(), [idempotencyKey ?? null]);
    await assert.rejects(() => stream.finalResponse(), TypeError);
    if (idempotencyKey) {
      const again = await client.stream(input, { idempotencyKey, maxRetries: 9 }).finalResponse();
      assert.equal(again.usage?.outputTokens, 40n);
    }
    let charges: vx.LedgerEntry[] = [];
    while (charges.length === 0) charges = await chargesOf(user);
    assert.equal(charges.length, 1);
  });
}

test("a key in the headers is the key of the call, and an empty key is none", async () => {
  const given = fault("lose=1");
  const key = `${RUN}-header`;
  await faulty.generate(asks("hello"), { headers: { ...given.headers, "Idempotency-Key": key } });
  assert.deepEqual(await given.attempts(), [key, key]);
  const empty = fault("lose=1");
  await failure(() => faulty.stream(asks("hello"), { headers: empty.headers, idempotencyKey: "" }).finalResponse());
  assert.deepEqual(await empty.attempts(), [null]);
});

test("a stream without a key is repeated only if the server says that it failed", async () => {
  const refused = fault("reason=overloaded;retry-after=0");
  await faulty.stream(asks("hello"), { headers: refused.headers }).finalResponse();
  assert.deepEqual(await refused.attempts(), [null, null]);
  for (const parts of ["status=503;retry-after=0", "lose=1"]) {
    const lost = fault(parts);
    const error = await failure(() => faulty.stream(asks("hello"), { headers: lost.headers }).finalResponse());
    assert.ok(error instanceof (parts === "lose=1" ? vx.ConnectionError : vx.ServerError));
    assert.equal((await lost.attempts()).length, 1);
  }
});

test("creating a key is not repeated when its response is lost", async () => {
  const { headers, attempts } = fault("lose=1");
  const error = await failure(() => faulty.keys.create({ name: "lost", scopes: ["read"] }, { headers }));
  assert.ok(error instanceof vx.ConnectionError);
  assert.equal((await attempts()).length, 1);
  for await (const { id, name } of client.keys.list()) if (name === "lost") await client.keys.revoke(id);
});

test("a signal ends a call and the wait before a retry; a time limit ends a call", async () => {
  const aborted = await failure(() => client.generate(asks("hello"), { signal: AbortSignal.abort() }));
  assert.ok(aborted instanceof vx.AbortError);
  const { headers, attempts } = fault("times=9;status=503;retry-after=50");
  const waiting = new AbortController();
  const call = failure(() => faulty.me({ headers, signal: waiting.signal }));
  while ((await attempts()).length === 0);
  waiting.abort();
  assert.ok((await call) instanceof vx.AbortError);
  const slow = await failure(() => client.generate(asks("[[tokens=400 delay_ms=100]]"), { timeoutMs: 50 }));
  assert.ok(slow instanceof vx.TimeoutError || slow instanceof vx.DeadlineExceededError);
  assert.equal(slow.code, "deadline_exceeded");
});

test("a server that is not reachable is a ConnectionError", async () => {
  const nowhere = new vx.Client({ url: "http://127.0.0.1:1", maxRetries: 0 });
  assert.ok((await failure(() => nowhere.me())) instanceof vx.ConnectionError);
});

test("without a key, and in a page, there is no client", () => {
  assert.throws(() => new vx.Client({ key: "" }), /VX_KEY/);
  Object.assign(globalThis, { window: { document: {} } });
  assert.throws(() => new vx.Client(), /dangerouslyAllowBrowser/);
  new vx.Client({ dangerouslyAllowBrowser: true });
});

test("responses show their headers", async () => {
  let requestId: string | null = "";
  const headers = { "x-request-id": "mine" };
  await client.me({ headers, onHeader: (received) => (requestId = received.get("x-request-id")) });
  assert.equal(requestId, "mine");
});

const unknown = new vx.Client({ key: env.VX_NO_KEY });
const keyCreated = { types: ["key.created"] };

async function createKeys(count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const { apiKey } = await client.keys.create({ name: `${RUN}-event` });
    ids.push(apiKey?.id ?? "");
    await client.keys.revoke(ids.at(-1) ?? "");
  }
  return ids;
}

test("events are listed page by page, and their data is of their type", async () => {
  const { items } = (await client.events.list({ order: "desc", pageSize: 1 }).pages().next()).value ?? {};
  const ids = await createKeys(3);
  const listed: string[] = [];
  for await (const event of client.events.list({ ...keyCreated, after: items?.[0]?.id ?? "", pageSize: 2 })) {
    const typed = vx.typedEvent(event);
    if (typed?.type === "key.created") listed.push(typed.data.keyId);
  }
  assert.deepEqual(
    listed.filter((id) => ids.includes(id)),
    ids,
  );
});

test("a watch continues after each broken connection, without a gap", async () => {
  const ids = await createKeys(4);
  const { headers, attempts } = fault("times=3;cut=500");
  const seen: string[] = [];
  for await (const event of faulty.events.watch(keyCreated, { headers })) {
    seen.push(String(event.data?.key_id));
    if (ids.every((id) => seen.includes(id))) break;
  }
  assert.equal(new Set(seen).size, seen.length);
  assert.deepEqual(seen.slice(-4), ids);
  assert.ok((await attempts()).length > 2);
});

test("a watch from now gets only later events", async () => {
  await createKeys(1);
  const { headers, attempts } = fault("times=2;status=503");
  const watch = faulty.events.watch({ ...keyCreated, after: "now" }, { headers });
  const first = watch.next();
  // The third attempt finds where "now" is, and the fourth one is the watch.
  while ((await attempts()).length < 4);
  const [id] = await createKeys(1);
  assert.equal((await first).value?.data?.key_id, id);
  await watch.return();
});

test("a watch throws an error that does not heal, and after as many failures as the caller allows", async () => {
  assert.equal((await failure(() => unknown.events.watch().next())).reason, "invalid_api_key");
  const { headers, attempts } = fault("times=9;status=503");
  await failure(() => faulty.events.watch({}, { headers, maxRetries: 1 }).next());
  assert.equal((await attempts()).length, 2);
});

test("a webhook is created, tested, verified and deleted", async () => {
  const received: { body: string; headers: vx.WebhookHeaders }[] = [];
  const server = createServer(async (request, response) => {
    received.push({ body: await text(request), headers: request.headers });
    response.writeHead(204).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const { webhook, secret } = await client.webhooks.create({ url, types: ["balance.low"] });
  const id = webhook?.id ?? "";
  assert.equal((await client.webhooks.test(id)).status, 204);
  const { body = "", headers = {} } = received[0] ?? {};
  const event = vx.typedEvent(vx.verifyWebhook(body, headers, secret));
  assert.equal(event?.type, "webhook.test");
  assert.equal(event.data.webhookId, id);
  assert.throws(() => vx.verifyWebhook(`${body} `, headers, secret), vx.WebhookVerificationError);
  assert.equal((await client.webhooks.update({ webhookId: id, state: "paused" })).state, "paused");
  assert.notEqual((await client.webhooks.rotate({ webhookId: id })).secret, secret);
  for await (const delivery of client.webhooks.deliveries({ webhookId: id })) assert.ok(delivery.eventId);
  assert.equal((await client.webhooks.redeliver({ webhookId: id })).hasMore, false);
  assert.ok((await client.webhooks.list()).some((each) => each.id === id));
  await client.webhooks.delete(id);
  assert.equal((await failure(() => client.webhooks.get(id))).reason, "not_found");
  server.close();
});
