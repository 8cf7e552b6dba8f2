import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ApiCall } from "../../src/api/define-service.ts";
import { DomainError } from "../../src/domain/errors.ts";
import { started } from "../support/started.ts";
import { expectError, https, JSON_BODY, jsonOf } from "./answers.ts";
import { testFile } from "./descriptors.ts";
import { mount } from "./mount.ts";

type Ask = { readonly kind: string; readonly stream: boolean };

const POST = { pattern: { case: "post", value: "/v1/say" }, body: "*" } as const;
const file = testFile(
  {
    Inner: ["bool stream"],
    Ask: ["string kind", "bool stream", "Inner inner", "repeated Inner list"],
    Reply: ["string text", "int64 number"],
  },
  {
    Say: { input: "Ask", output: "Reply", http: POST },
    StreamSay: { input: "Ask", output: "Reply", streams: true, http: POST, selectedBy: "stream" },
    Watch: { input: "Ask", output: "Reply", streams: true, http: { pattern: { case: "get", value: "/v1/watch" } } },
  },
);

const PIECE = "x".repeat(100_000);
/** The state of the generator of the last call. */
let produced = 0;
let finished: "no" | "ended" | "aborted" = "no";

async function* pieces({ kind }: Ask, call: ApiCall) {
  finished = "no";
  const { signal } = call;
  try {
    if (kind === "fails first") throw new DomainError("insufficient_balance");
    if (kind === "breaks first") throw new Error("a secret");
    if (kind === "nothing") return;
    yield { text: "a\n\ndata: b\r\n", number: 9_007_199_254_740_993n };
    if (kind === "fails later") throw new DomainError("unavailable", { message: "gone" });
    if (kind === "breaks later") throw new Error("a secret");
    if (kind === "waits") await once(signal, "abort");
    while (kind === "endless" && !signal.aborted) {
      produced++;
      yield { text: PIECE };
      await new Promise((resolve) => setImmediate(resolve));
    }
    yield { text: "end" };
  } finally {
    finished = signal.aborted ? "aborted" : "ended";
  }
}

const mounted = started(() =>
  mount(file, {
    methods: { say: ({ kind }: Ask) => ({ text: `unary ${kind}` }), streamSay: pieces, watch: pieces },
    maxBodyBytes: 8_388_608,
  }),
);
afterEach(() => {
  mounted.ended.splice(0);
  produced = 0;
});

const FIRST = 'data: {"text":"a\\n\\ndata: b\\r\\n","number":9007199254740993}\n\n';
const END = 'data: {"text":"end","number":0}\n\n';
const DONE = "data: [DONE]\n\n";

const sayOver =
  (send: (typeof https)[number]["send"]) =>
  (body: object | string, headers: Record<string, string> = {}) =>
    send(mounted.url, {
      path: "/v1/say",
      headers: { ...JSON_BODY, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

describe("how a request selects a stream, and how it fails", () => {
  const [{ send }] = https;
  const say = sayOver(send);

  test("a stream without messages contains only [DONE]", async () => {
    expect((await say({ stream: true, kind: "nothing" })).body.toString()).toBe(DONE);
  });

  test("a streaming method with its own path reads its parameters from the query", async () => {
    const answer = await send(mounted.url, { method: "GET", path: "/v1/watch?kind=x&stream=true" });
    expect(answer.body.toString()).toBe(FIRST + END + DONE);
  });

  test("a stream is not compressed", async () => {
    const answer = await say({ stream: true }, { "accept-encoding": "gzip, br" });
    expect(answer.headers["content-encoding"]).toBe(undefined);
    expect(answer.body.toString()).toBe(FIRST + END + DONE);
  });

  test.each([
    '{"stream":true}',
    ' { "kind" : "x" , "stream" : true } ',
    '{"str\\u0065am":true}',
    '{"inner":{"stream":false},"stream":true}',
    '{"list":[{"stream":true},{}],"stream":true}',
  ])("%s returns a stream", async (body) => {
    expect((await say(body)).headers["content-type"]).toBe("text/event-stream");
  });

  test.each([1, 2, 3])("stream: true is found if a search window ends %i bytes into the value", async (bytes) => {
    const kind = "x".repeat(4_194_304 - bytes - '{"kind":"","stream":'.length);
    expect((await say({ kind, stream: true })).headers["content-type"]).toBe("text/event-stream");
  });

  test.each([
    "",
    "{}",
    '{"stream":false}',
    '{"stream":null}',
    '{"kind":"true"}',
    '{"kind":"\\"stream\\":true"}',
    '{"inner":{"stream":true}}',
    '{"list":[{"stream":true}]}',
    '{"stream":false,"inner":{"stream":true}}',
    '{"inner":{"stream":true},"stream":false}',
  ])("%s returns a unary response", async (body) => {
    expect(jsonOf(await say(body)).text).toMatch(/^unary /);
  });

  test.each([
    ['{"stream":"true"}', "stream"],
    ['{"stream":1}', "stream"],
    ['{"stream":[true]}', "stream"],
    ['{"stream":true,"nothing":1}', "nothing"],
    ['{"stream":true,"inner":{"streams":true}}', "inner.streams"],
  ])("%s is an ordinary 400", async (body, field) => {
    expectError(await say(body), "invalid_argument", field);
  });

  test.each(['{"stream":true,"stream":true}', '{"stream":true', '{"stream":true}}', '[{"stream":true}]'])(
    "%s is an ordinary 400 without a field",
    async (body) => {
      expectError(await say(body), "invalid_argument");
    },
  );

  test("a failure before the first event is an ordinary error response", async () => {
    expectError(await say({ stream: true, kind: "fails first" }), "insufficient_balance");
    expect(mounted.ended[0]?.failure).toBeInstanceOf(DomainError);
    const broken = await say({ stream: true, kind: "breaks first" });
    expectError(broken, "internal");
    expect(broken.body.toString()).not.toContain("secret");
  });

  test.each([
    ["fails later", "unavailable", "gone"],
    ["breaks later", "internal", "request id"],
  ])("a stream that %s ends with an error event and no [DONE]", async (kind, code, text) => {
    const answer = await say({ stream: true, kind }, { "x-request-id": "r1" });
    expect(answer.status).toBe(200);
    const [first, event, ...more] = answer.body.toString().split(/(?<=\n\n)/);
    expect(first).toBe(FIRST);
    expect(more).toEqual([]);
    const { error } = JSON.parse(event?.replace(/^data: /, "") ?? "") as { error: Record<string, unknown> };
    expect(error).toMatchObject({ code, request_id: "r1" });
    expect(error.message).toContain(text);
    expect(answer.body.toString()).not.toContain("secret");
    expect(mounted.ended[0]?.failure).toBeInstanceOf(Error);
  });
});

describe.each(https)("over $name", ({ name, send }) => {
  const say = sayOver(send);

  test("messages are sent as server-sent events, followed by [DONE]", async () => {
    const answer = await say({ stream: true });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ "content-type": "text/event-stream", "cache-control": "no-store" });
    expect(answer.body.toString()).toBe(FIRST + END + DONE);
    expect(mounted.ended).toEqual([{ rpc: "test.v1.TestService/StreamSay", code: 0, failure: undefined }]);
    expect(finished).toBe("ended");
  });

  test.each(["waits", "endless"])("a disconnect ends a stream that %s", async (kind) => {
    const stream = open(name, kind);
    await vi.waitFor(() => expect(stream.text()).toContain(FIRST));
    stream.leave();
    await vi.waitFor(() => expect(mounted.ended.map(({ code }) => code)).toEqual([Code.Canceled]));
    expect(finished).toBe("aborted");
  });

  test("a client that does not read pauses the production, and gets everything when it reads", async () => {
    const stream = open(name, "endless");
    stream.pause();
    // Socket buffers and flow-control windows accept some data; then nothing is produced between some responses of the server.
    const untilPaused = async () => {
      for (let [before, unchanged] = [0, 0]; unchanged < 5; unchanged = produced === before ? unchanged + 1 : 0) {
        before = produced;
        await say({});
      }
      return produced;
    };
    await vi.waitFor(() => expect(produced).toBeGreaterThan(0), { interval: 1 });
    const before = await untilPaused();
    expect(produced * PIECE.length).toBeLessThan(24_000_000);
    stream.resume();
    await vi.waitFor(() => expect(produced).toBeGreaterThan(before + 50), { interval: 5 });
    stream.pause();
    await untilPaused();
    stream.leave();
    await vi.waitFor(() => expect(mounted.ended.at(-1)?.code).toBe(Code.Canceled));
    expect(finished).toBe("aborted");
  });
});

/** Opens a stream that is read until it is paused. */
function open(http: string, kind: string) {
  const body = JSON.stringify({ stream: true, kind });
  const chunks: Buffer[] = [];
  const text = () => Buffer.concat(chunks).toString();
  if (http === "HTTP/2") {
    const session = connect(mounted.url);
    const stream = session.request({ ":method": "POST", ":path": "/v1/say", ...JSON_BODY });
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.once("close", () => session.destroy());
    stream.end(body);
    return { text, pause: () => void stream.pause(), resume: () => void stream.resume(), leave: () => stream.close(8) };
  }
  const call = httpRequest(`${mounted.url}/v1/say`, {
    method: "POST",
    headers: { ...JSON_BODY, "content-length": body.length },
    agent: false,
  });
  call.on("error", () => undefined);
  let paused = false;
  let response: IncomingMessage | undefined;
  call.on("response", (received) => {
    response = received.on("error", () => undefined).on("data", (chunk: Buffer) => chunks.push(chunk));
    if (paused) received.pause();
  });
  call.end(body);
  return {
    text,
    pause: () => {
      paused = true;
      response?.pause();
    },
    resume: () => void response?.resume(),
    leave: () => void call.destroy(),
  };
}
