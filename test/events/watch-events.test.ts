import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { describe, expect, test, vi } from "vitest";
import { type Event, EventService } from "../../gen/vx/v1/event_pb.js";
import { startTestApp, useOwnApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";

const app = useOwnApp();
const other = started(() => startTestApp({ database: app.database }));
const operator = useOperator(app);

let credits = 0;
/** Causes an event on one server; the watchers are on the other one. */
const credit = ({ accountId }: TestKey) =>
  operator.creditAccount({ accountId, amountMicros: 1n, reason: "test", idempotencyKey: `${credits++}` });

/** More than the buffers of a connection hold. */
async function addLargeEvents({ accountId }: TestKey, count: number): Promise<void> {
  await app.database.owner`
    INSERT INTO vx.events (lane, account_id, seq, id, type, created_at, data)
    SELECT lane, account_id, seq + n, vx.event_id(lane, created_at + n * interval '1 microsecond'), type,
           created_at + n * interval '1 microsecond', jsonb_build_object('name', repeat('x', 15000))
    FROM vx.events, generate_series(1, ${count}) n WHERE account_id = ${accountId}`;
  await app.database.owner`UPDATE vx.event_ends SET seq = seq + ${count} WHERE account_id = ${accountId}`;
}

type Message = { readonly id: string | undefined; readonly data: string };

class RestWatch {
  readonly response: Response;
  readonly #reader: ReadableStreamDefaultReader<Message>;

  constructor(response: Response) {
    this.response = response;
    const text = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream());
    this.#reader = text.pipeThrough(new EventSourceParserStream()).getReader() as ReadableStreamDefaultReader<Message>;
  }

  static async open({ secret }: TestKey, query = "", headers = {}): Promise<RestWatch> {
    const url = `${other.url}/v1/events:watch${query}`;
    return new RestWatch(await fetch(url, { headers: { ...bearer(secret), ...headers } }));
  }

  /** The next event, after a check that its id is that of the message. */
  async next(): Promise<{ id: string; type: string; seq: number }> {
    const { id, data } = (await this.#reader.read()).value as Message;
    const event = JSON.parse(data);
    expect([id, event.error]).toEqual([event.id, undefined]);
    return event;
  }

  /** Reads all events; the number of these and the code of the error that ends the stream. */
  async rest(): Promise<{ events: number; code: string }> {
    for (let events = 0; ; events++) {
      const { data } = (await this.#reader.read()).value as Message;
      const { error } = JSON.parse(data);
      if (error) return { events, code: error.code };
    }
  }

  /** The code of the error that ends the stream. */
  async error(): Promise<string> {
    const { data } = (await this.#reader.read()).value as Message;
    expect((await this.#reader.read()).done).toBe(true);
    return JSON.parse(data).error.code;
  }

  async close(): Promise<void> {
    await this.#reader.cancel();
  }
}

describe.concurrent("over REST", () => {
  test("sends the kept events and then new ones of another server, in order and with their ids", async () => {
    const key = await createTestKey(operator);
    const watch = await RestWatch.open(key);
    expect(watch.response.headers.get("content-type")).toBe("text/event-stream");
    expect(await watch.next()).toMatchObject({ type: "key.created", seq: 1 });
    for (let i = 0; i < 3; i++) await credit(key);
    for (const seq of [2, 3, 4]) expect(await watch.next()).toMatchObject({ type: "credit.posted", seq });
    await watch.close();
  });

  test("sends all of more new events than it reads at once", async () => {
    const key = await createTestKey(operator);
    const watch = await RestWatch.open(key);
    await watch.next();
    await addLargeEvents(key, 120);
    for (let seq = 2; seq <= 121; seq++) expect(await watch.next()).toMatchObject({ seq });
    await watch.close();
  });

  test("begins after the event of Last-Event-ID, which takes precedence over the query", async () => {
    const key = await createTestKey(operator);
    await credit(key);
    await credit(key);
    const first = await RestWatch.open(key);
    const [one, two] = [await first.next(), await first.next()];
    await first.close();
    const second = await RestWatch.open(key, `?after=${one.id}`, { "last-event-id": two.id });
    expect(await second.next()).toMatchObject({ seq: 3 });
    await second.close();
  });

  test('with "now", has its headers at once and sends only new events', async () => {
    const key = await createTestKey(operator);
    const watch = await RestWatch.open(key, "?after=now");
    expect(watch.response.status).toBe(200);
    await credit(key);
    expect(await watch.next()).toMatchObject({ seq: 2 });
    await watch.close();
  });

  test("sends only events of the types, however many others are between them", async () => {
    const key = await createTestKey(operator);
    const watch = await RestWatch.open(key, "?types=account.suspended");
    await credit(key);
    await credit(key);
    await operator.suspendAccount({ accountId: key.accountId, reason: "test" });
    expect(await watch.next()).toMatchObject({ type: "account.suspended", seq: 4 });
    await watch.close();
  });

  test("ends when the key loses the scope, is revoked or expires", async () => {
    const key = await createTestKey(operator);
    const lesser = await createTestKey(operator);
    const limited = await RestWatch.open(lesser, "?types=key.created,key.updated");
    // Then the change comes after the kept events were read.
    await limited.next();
    await operator.updateKey({ keyId: lesser.id, scopes: ["generate"] });
    expect(await limited.error()).toBe("insufficient_scope");
    const revoked = await RestWatch.open(await createTestKey(operator, key), "?types=credit.posted");
    const second = await createTestKey(operator, key);
    const expired = await RestWatch.open(second, "?types=credit.posted");
    await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${second.id}`;
    expect(await expired.error()).toBe("expired_api_key");
    for (const { id: own } of (await operator.listKeys({ accountId: key.accountId })).apiKeys)
      await operator.revokeKey({ keyId: own });
    expect(await revoked.error()).toBe("revoked_api_key");
  });

  test("does not end by a rotation, with or without an overlap", async () => {
    const key = await createTestKey(operator);
    const watch = await RestWatch.open(key, "?after=now&types=credit.posted");
    for (const overlapSeconds of [3_600, 0]) {
      await operator.rotateKey({ keyId: key.id, overlapSeconds });
      await credit(key);
      expect(await watch.next()).toMatchObject({ type: "credit.posted" });
    }
    await operator.revokeKey({ keyId: key.id });
    expect(await watch.error()).toBe("revoked_api_key");
  });

  test("ends when the key is revoked while there are kept events to read", async () => {
    const key = await createTestKey(operator);
    const count = 2_000;
    await addLargeEvents(key, count);
    const slow = await RestWatch.open(key);
    const idle = await RestWatch.open(key, "?after=now&types=credit.posted");
    await slow.next();
    await operator.revokeKey({ keyId: key.id });
    expect(await idle.error()).toBe("revoked_api_key");
    const { code, events } = await slow.rest();
    expect(code).toBe("revoked_api_key");
    expect(events).toBeLessThan(count - 2);
  });

  test.each([
    ["?after=evt_x", 400],
    ["?types=x", 400],
    ["?after=evt_00000000000000000000000000", 410],
  ])("%s is an ordinary error", async (query, status) => {
    const key = await createTestKey(operator);
    expect((await RestWatch.open(key, query)).response.status).toBe(status);
  });

  test("a drain ends the stream at once", async () => {
    const third = await startTestApp({ database: app.database });
    const key = await createTestKey(operator);
    const response = await fetch(`${third.url}/v1/events:watch?after=now`, { headers: bearer(key.secret) });
    const watch = new RestWatch(response);
    const stopping = third.stop();
    expect(await watch.error()).toBe("unavailable");
    await stopping;
  });
});

const transports: [name: string, open: (baseUrl: string) => Transport][] = [
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["gRPC-Web over HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
  ["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
];

test.concurrent.each(transports)(
  "over %s, has its headers at once, sends new events, and ends when the key is revoked",
  async (_, open) => {
    const key = await createTestKey(operator);
    const headers = Promise.withResolvers<void>();
    const options = { headers: bearer(key.secret), onHeader: () => headers.resolve() };
    const stream = createClient(EventService, open(other.url)).watchEvents({ after: "now" }, options);
    const events: Event[] = [];
    const reading = (async () => {
      for await (const { event } of stream) {
        if (event) events.push(event);
        if (event?.type === "credit.posted") await operator.revokeKey({ keyId: key.id });
      }
    })();
    await headers.promise;
    await credit(key);
    await expect(reading).rejects.toThrow("The API key was revoked");
    expect(events[0]).toMatchObject({ type: "credit.posted", seq: 2n, accountId: key.accountId });
  },
);

describe("callers that read nothing", () => {
  test("do not delay other watchers, and their calls end when the key is revoked: gRPC", async () => {
    const key = await createTestKey(operator);
    const reader = await createTestKey(operator);
    // More than a call writes ahead of its reader, and little to read for 100 calls: a busy server refuses some.
    await addLargeEvents(key, 10);
    // Before the others: a server whose turn takes long refuses new calls.
    const watch = await RestWatch.open(reader, "?after=now");
    expect(watch.response.status).toBe(200);
    const session = connectHttp2(other.url, { settings: { initialWindowSize: 0 } });
    session.on("error", () => undefined);
    const headers = { "content-type": "application/grpc", te: "trailers", ...bearer(key.secret) };
    const streams = Array.from({ length: 100 }, () => {
      const stream = session.request({ ":method": "POST", ":path": "/vx.v1.EventService/WatchEvents", ...headers });
      stream.on("error", () => undefined);
      stream.end(Buffer.alloc(5));
      return { stream, response: once(stream, "response"), closed: once(stream, "close") };
    });
    await Promise.all(streams.map(({ response }) => response));
    await credit(reader);
    expect((await watch.next()).type).toBe("credit.posted");
    await watch.close();
    // Gets no data without a window, but the end of a stream that has sent none.
    for (const { stream } of streams) stream.resume();
    await operator.revokeKey({ keyId: key.id });
    await Promise.all(streams.map(({ closed }) => closed));
    session.destroy();
  });

  test("over HTTP/1.1 leave their places, at most 100 for an account and server, when the key is revoked or they disconnect", async () => {
    const key = await createTestKey(operator);
    await addLargeEvents(key, 2_000);
    const second = await createTestKey(operator, { accountId: key.accountId });
    const status = async () => (await RestWatch.open(second, "?after=now")).response.status;
    const unread: Response[] = [];
    // A server that is busy refuses calls for a moment.
    for (let i = 0; i < 100; i++) {
      const open = async () => {
        unread[i] = await fetch(`${other.url}/v1/events:watch`, { headers: bearer(key.secret) });
        return unread[i]?.status;
      };
      await expect.poll(open).toBe(200);
    }
    expect(await status()).toBe(503);
    await unread[0]?.body?.cancel();
    await expect.poll(status).toBe(200);
    await operator.revokeKey({ keyId: key.id });
    await expect.poll(status).toBe(200);
    for (const { body } of unread.slice(1)) await body?.cancel();
  });
});

test("a failure to look for new events is logged once, and watchers get the events after it", async () => {
  const { owner } = app.database;
  const key = await createTestKey(operator);
  const watch = await RestWatch.open(key);
  expect((await watch.next()).type).toBe("key.created");
  await owner.unsafe(`
    ALTER FUNCTION vx.watched_accounts(smallint[], text[], bigint[], text[]) RENAME TO kept_accounts;
    CREATE SEQUENCE vx.rounds;
    CREATE FUNCTION vx.watched_accounts(smallint[], text[], bigint[], text[]) RETURNS TABLE (n bigint, seq bigint, ended text)
      LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM nextval('vx.rounds'); RAISE EXCEPTION 'broken'; END $$;
    GRANT EXECUTE ON FUNCTION vx.watched_accounts TO PUBLIC`);
  await credit(key);
  await vi.waitFor(async () => {
    const [row] = await owner<{ rounds: number }[]>`SELECT last_value::int AS rounds FROM vx.rounds`;
    expect(row?.rounds).toBeGreaterThan(2);
  });
  await owner.unsafe(`
    DROP FUNCTION vx.watched_accounts;
    DROP SEQUENCE vx.rounds;
    ALTER FUNCTION vx.kept_accounts RENAME TO watched_accounts`);
  expect((await watch.next()).type).toBe("credit.posted");
  expect(other.logText().match(/looking for new events failed/g)).toHaveLength(1);
});
