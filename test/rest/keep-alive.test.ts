import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { DomainError } from "../../src/domain/errors.ts";
import { JSON_BODY } from "./answers.ts";
import { testFile } from "./descriptors.ts";
import { type Mounted, mount } from "./mount.ts";

const http = { pattern: { case: "post", value: "/v1/watch" }, body: "*" } as const;
const Watch = { input: "Ask", output: "Reply", streams: true, http };
const serve = async (surface: Surface, watch: () => AsyncGenerator<object>) => {
  mounted = await mount(testFile({ Ask: ["string kind"], Reply: ["string type"] }, { Watch }, surface), { methods: { watch } });
};

let mounted: Mounted;
let tell: () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await mounted.stop();
});

async function* news() {
  for (;;) {
    const told = Promise.withResolvers<void>();
    tell = told.resolve;
    yield { type: "news" };
    await told.promise;
  }
}

const DATA = 'data: {"type":"news"}\n\n';
const COMMENT = ": keep-alive\n\n";
const PING = 'event: ping\ndata: {"type": "ping"}\n\n';

test.each([
  ["comment", Surface.UNSPECIFIED, DATA, COMMENT],
  ["comment", Surface.OPENAI, DATA, COMMENT],
  ["comment", Surface.OPENAI_RESPONSES, `event: news\n${DATA}`, COMMENT],
  ["ping", Surface.ANTHROPIC, `event: news\n${DATA}`, PING],
])("a %s is sent after every 15 s without an event (surface %i)", async (_name, surface, event, keepAlive) => {
  await serve(surface, news);
  const read = await watch();
  expect(await read()).toBe(event);
  vi.advanceTimersByTime(14_999);
  vi.advanceTimersByTime(1);
  expect(await read()).toBe(keepAlive);
  vi.advanceTimersByTime(15_000);
  expect(await read()).toBe(keepAlive);
  vi.advanceTimersByTime(14_999);
  tell();
  // No comment was sent before.
  expect(await read()).toBe(event);
  vi.advanceTimersByTime(14_999);
  tell();
  expect(await read()).toBe(event);
  vi.advanceTimersByTime(15_000);
  expect(await read()).toBe(keepAlive);
});

test("no timer is left after a stream, however it ends", async () => {
  const idle = vi.getTimerCount();
  const complete = await serveLate(Surface.UNSPECIFIED);
  const watching = watch();
  await complete.started;
  complete.first.resolve({ type: "news" });
  const read = await watching;
  while ((await read()) !== undefined);
  await vi.waitFor(() => expect(mounted.ended).toHaveLength(1));
  expect(vi.getTimerCount()).toBe(idle);
  await mounted.stop();

  const failing = await serveLate(Surface.UNSPECIFIED);
  const failed = fetchWatch();
  await failing.started;
  failing.first.reject(new DomainError("upstream_error"));
  expect((await failed).status).toBe(502);
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(idle));
});

const FORMS = [
  ["native", Surface.UNSPECIFIED, COMMENT],
  ["OpenAI", Surface.OPENAI, COMMENT],
  ["Responses", Surface.OPENAI_RESPONSES, COMMENT],
  ["Anthropic", Surface.ANTHROPIC, PING],
] as const;

/** A stream whose first message, or whose error, is awaited. */
async function serveLate(surface: Surface) {
  const first = Promise.withResolvers<object>();
  const started = Promise.withResolvers<void>();
  await serve(surface, async function* () {
    started.resolve();
    yield await first.promise;
  });
  return { first, started: started.promise };
}

describe.each(FORMS)("a stream of the surface %s that is silent from its start", (_, surface, keepAlive) => {
  test("gets headers and a keep-alive after 15 s, then its events", async () => {
    const { first, started } = await serveLate(surface);
    const watching = watch();
    await started;
    vi.advanceTimersByTime(15_000);
    const read = await watching;
    expect(await read()).toBe(keepAlive);
    first.resolve({ type: "news" });
    expect(await read()).toContain(DATA);
  });

  test("ends with an event if it fails later", async () => {
    const { first, started } = await serveLate(surface);
    const watching = watch();
    await started;
    vi.advanceTimersByTime(15_000);
    const read = await watching;
    expect(await read()).toBe(keepAlive);
    first.reject(new DomainError("upstream_error"));
    expect(await read()).toMatch(/data: .*upstream_error/);
    expect(await read()).toBe(undefined);
    expect(mounted.ended).toMatchObject([{ failure: expect.objectContaining({ reason: "upstream_error" }) }]);
  });

  test("gets an ordinary response if it fails before", async () => {
    const { first, started } = await serveLate(surface);
    const answer = fetchWatch();
    await started;
    vi.advanceTimersByTime(14_999);
    first.reject(new DomainError("upstream_error"));
    const { status, headers } = await answer;
    expect({ status, type: headers.get("content-type") }).toEqual({ status: 502, type: "application/json" });
  });

  test("gets nothing more if the caller disconnects first", async () => {
    const { first, started } = await serveLate(surface);
    const left = new AbortController();
    const answer = fetchWatch(left.signal);
    await started;
    left.abort();
    await expect(answer).rejects.toThrow();
    vi.advanceTimersByTime(30_000);
    first.resolve({ type: "news" });
    await vi.waitFor(() => expect(mounted.ended).toHaveLength(1));
  });
});

function fetchWatch(signal?: AbortSignal): Promise<Response> {
  return fetch(`${mounted.url}/v1/watch`, { method: "POST", headers: JSON_BODY, body: "{}", signal: signal ?? null });
}

/** Starts the stream; each call of the returned function waits for the next chunk. */
async function watch(): Promise<() => Promise<string>> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const call = httpRequest(`${mounted.url}/v1/watch`, { method: "POST", headers: JSON_BODY, agent: false });
    call.on("error", reject).on("response", resolve).end("{}");
  });
  response.setEncoding("utf8");
  const texts = response[Symbol.asyncIterator]() as AsyncIterator<string>;
  return async () => (await texts.next()).value;
}
