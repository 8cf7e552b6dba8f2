import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import type { AdmittedKey } from "../../src/keys/admit.ts";
import { testFile } from "../rest/descriptors.ts";
import { admitting, type Mounted, mount } from "../rest/mount.ts";

const BODY_MS = 60_000;
const LIMIT = 300_000;
const http = { pattern: { case: "post", value: "/v1/measure" }, body: "*" } as const;
const file = testFile(
  { Text: ["string text"], Length: ["int32 length"] },
  { Measure: { input: "Text", output: "Length", http } },
);

let server: Mounted;
let budget: BodyBudget;
let sessions: ClientHttp2Session[];

/** Methods end when it resolves. */
let work: Promise<void>;

/** The key of a call is the name of its account. */
const authenticate = admitting((call) => {
  const [name] = call.headers("authorization");
  return name === undefined ? {} : { key: { accountId: name } as AdmittedKey };
});

async function start(bodyMs = BODY_MS) {
  work = Promise.resolve();
  budget = new BodyBudget({ maxBytes: LIMIT + 100_000, smallBytes: 100_000, bodyMs });
  server = await mount(file, {
    budget,
    authenticate: [authenticate],
    maxBodyBytes: 32_000_000,
    methods: {
      measure: async ({ text }: { text: string }) => {
        await work;
        return { length: text.length };
      },
    },
  });
}

beforeEach(async () => {
  sessions = [];
  await start();
});
afterEach(async () => {
  for (const session of sessions) session.destroy();
  await server.stop();
});

/** A call whose body comes bit by bit. */
type Slow = {
  write(text: string): void;
  end(text: string): void;
  cancel(): void;
  answer(): Promise<{ status: number; text: string }>;
};
type OpenSlow = (path: string, type: string, account?: string) => Slow;

const keyOf = (account: string | undefined) => (account === undefined ? {} : { authorization: account });

const slowHttp1: OpenSlow = (path, type, account) => {
  const call: ClientRequest = httpRequest(new URL(path, server.url), {
    method: "POST",
    headers: { "content-type": type, ...keyOf(account) },
    agent: false,
  });
  call.on("error", () => undefined);
  return {
    write: (text) => void call.write(text),
    end: (text) => void call.end(text),
    cancel: () => void call.destroy(),
    answer: async () => {
      const [response] = (await once(call, "response")) as [IncomingMessage];
      return { status: response.statusCode ?? 0, text: await textOf(response) };
    },
  };
};

const slowHttp2: OpenSlow = (path, type, account) => {
  const session = connect(server.url);
  sessions.push(session);
  const stream: ClientHttp2Stream = session.request(
    { ":method": "POST", ":path": path, "content-type": type, te: "trailers", ...keyOf(account) },
    { endStream: false },
  );
  stream.on("error", () => undefined);
  return {
    write: (text) => void stream.write(text),
    end: (text) => void stream.end(text),
    cancel: () => void stream.close(8),
    answer: async () => {
      let trailers = {};
      stream.on("trailers", (received) => {
        trailers = received;
      });
      const [headers] = (await once(stream, "response")) as [{ ":status"?: number }];
      const text = await textOf(stream);
      return { status: headers[":status"] ?? 0, text: `${text} ${JSON.stringify({ ...headers, ...trailers })}` };
    },
  };
};

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Until the server has received so much, or so little. */
async function untilHeld(isReached: (bytes: number) => boolean): Promise<void> {
  while (!isReached(budget.usedBytes)) await new Promise((resolve) => setImmediate(resolve));
}

const head = '{"text":"';
/** Decoded, and once more for an upstream, it takes less than the limit. */
const half = "x".repeat(120_000);
/** Does not fit beside it. */
const rest = "x".repeat(200_000);

describe.each([
  ["REST over HTTP/1.1", slowHttp1, "/v1/measure", "application/json"],
  ["Connect over HTTP/2", slowHttp2, "/test.v1.TestService/Measure", "application/json"],
  ["Connect's own handler", slowHttp1, "/test.v1.TestService/Measure", "application/json;charset=utf-8"],
] as const)("%s", (_name, open, path, type) => {
  test("a decoded message counts until its call has ended", async () => {
    const working = Promise.withResolvers<void>();
    work = working.promise;
    const first = open(path, type);
    first.end(`${head}${half}"}`);
    await untilHeld((bytes) => bytes >= 2 * half.length);
    const second = open(path, type);
    second.write(head + half);
    expect((await second.answer()).status).toBe(503);
    working.resolve();
    expect((await first.answer()).status).toBe(200);
    await untilHeld((bytes) => bytes === 0);
  });

  test("an invalid message does not count after its call", async () => {
    const call = open(path, type);
    call.end(`${head}${half}`);
    expect((await call.answer()).status).toBe(400);
    await untilHeld((bytes) => bytes === 0);
  });

  test("an account that has its share is refused, and another one has room", async () => {
    const mine = open(path, type, "acc_1");
    mine.write(head + "x".repeat(LIMIT / 2 - 1_000));
    await untilHeld((bytes) => bytes > LIMIT / 2 - 1_000);
    const more = open(path, type, "acc_1");
    more.write(head + half);
    expect((await more.answer()).status).toBe(503);
    const other = open(path, type, "acc_2");
    other.end(`${head}${"x".repeat(35_000)}"}`);
    expect((await other.answer()).status).toBe(200);
    mine.cancel();
    await untilHeld((bytes) => bytes === 0);
  });

  test("a body that exceeds the remaining budget is rejected before its end", async () => {
    const first = open(path, type);
    first.write(head + half);
    await untilHeld((bytes) => bytes > half.length);
    const second = open(path, type);
    second.write(head + rest);
    const { status, text } = await second.answer();
    expect(status).toBe(503);
    expect(text).toMatch(/too many large requests in memory/);
    await untilHeld((bytes) => bytes === head.length + half.length);
    first.end('"}');
    expect(await first.answer()).toMatchObject({ status: 200, text: expect.stringContaining("120000") });
    await untilHeld((bytes) => bytes === 0);
  });

  test("a small body is still accepted", async () => {
    const large = open(path, type);
    large.write(head + "x".repeat(LIMIT - 100));
    await untilHeld((bytes) => bytes > LIMIT - 100);
    const small = open(path, type);
    small.end(`${head}hello"}`);
    expect((await small.answer()).status).toBe(200);
    large.cancel();
  });

  test("a disconnect releases the budget", async () => {
    const call = open(path, type);
    call.write(head + half);
    await untilHeld((bytes) => bytes > half.length);
    call.cancel();
    await untilHeld((bytes) => bytes === 0);
  });

  test("a body that takes too long releases the budget and gets an error", async () => {
    await server.stop();
    await start(200);
    const call = open(path, type);
    call.write(head + half);
    const { text } = await call.answer();
    expect(text).toMatch(/was not received in time/);
    await untilHeld((bytes) => bytes === 0);
  });
});

test("gRPC returns the same error in its trailers", async () => {
  const first = slowHttp1("/v1/measure", "application/json");
  first.write(head + half);
  await untilHeld((bytes) => bytes > half.length);
  const call = slowHttp2("/test.v1.TestService/Measure", "application/grpc+proto");
  call.write(rest);
  const { text } = await call.answer();
  expect(text).toMatch(/"grpc-status":"14"/);
  first.cancel();
});

test.each([
  ["/v1/measure", "keep-alive"],
  ["/v1/measure", "close"],
  ["/test.v1.TestService/Measure", "keep-alive"],
  ["/test.v1.TestService/Measure", "close"],
])("a client that reads only after sending a rejected body gets the response: %s, connection: %s", async (path, connection) => {
  const first = slowHttp1("/v1/measure", "application/json");
  first.write(head + half);
  await untilHeld((bytes) => bytes > half.length);
  const { hostname, port } = new URL(server.url);
  const caller = connectTcp(Number(port), hostname).pause();
  const body = `${head}${"x".repeat(LIMIT)}`;
  const rest = Buffer.alloc(16_000_000, "x");
  caller.write(
    `POST ${path} HTTP/1.1\r\nhost: vx\r\nconnection: ${connection}\r\ncontent-type: application/json\r\ncontent-length: ${body.length + rest.length}\r\n\r\n${body}`,
  );
  await new Promise<void>((resolve, reject) => {
    caller.once("error", reject);
    caller.write(rest, () => resolve());
  });
  const answered = once(caller, "data") as Promise<[Buffer]>;
  caller.resume();
  const [answer] = await answered;
  expect(answer.toString()).toMatch(/^HTTP\/1.1 503 /);
  caller.destroy();
  first.cancel();
});
