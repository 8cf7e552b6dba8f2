// Calls of servers that send what no vx server sends, and keys that no header can have.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";
import * as vx from "vx-client";

const KEY = `vx_live_${"a".repeat(32)}`;
const MEBIBYTE = Buffer.alloc(2 ** 20);

async function failureOf(
  answer: (response: ServerResponse) => void,
  call: (client: vx.Client) => PromiseLike<unknown>,
): Promise<unknown> {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    return await call(new vx.Client({ url, key: KEY, timeoutMs: 30_000, maxRetries: 0 })).then(
      () => undefined,
      (error: unknown) => error,
    );
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a response has a limit", async () => {
  let sent = 0;
  const endless = (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/proto" });
    const send = () => {
      if (++sent > 200) response.end();
      else response.write(MEBIBYTE, (error) => error || send());
    };
    send();
  };
  const error = await failureOf(endless, (client) => client.me());
  assert.ok(error instanceof vx.ServerError, inspect(error));
  assert.match(error.message, /more than 67108864 bytes/);
  assert.ok(sent < 100);
});

test("a message of a stream has a limit, wherever its frame is cut", async () => {
  const announced = Buffer.from([0, 0, 0, 0, 0, 0, 255, 255, 255, 255]);
  for (const cut of [1, 5, 7, 9, 10]) {
    const answer = (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "application/connect+proto" });
      response.write(announced.subarray(0, cut), () => response.write(announced.subarray(cut)));
    };
    const error = await failureOf(answer, (client) => client.stream({ model: "m", messages: [] }).finalResponse());
    assert.ok(error instanceof vx.ServerError, inspect(error));
    assert.match(error.message, /more than 67108864 bytes/);
  }
});

test("a tool call follows the one before it", async () => {
  // An event with a delta with a tool call with an index.
  for (const index of [[1], [255, 255, 255, 255, 7], [...Array(9).fill(255), 1]]) {
    const call = [8, ...index];
    const delta = [26, call.length, ...call];
    const event = [10, delta.length, ...delta];
    const answer = (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "application/connect+proto" });
      response.end(Buffer.from([0, 0, 0, 0, event.length, ...event, 2, 0, 0, 0, 2, 123, 125]));
    };
    const error = await failureOf(answer, (client) => client.stream({ model: "m", messages: [] }).finalResponse());
    assert.ok(error instanceof vx.ServerError, inspect(error));
    assert.match(error.message, /no tool call before/);
  }
});

test("spaces around a key are ignored; a key that no header can have is refused and not shown", async () => {
  for (const key of [` ${KEY}\n`, `${KEY}\r\n`]) {
    const client = new vx.Client({ url: "http://127.0.0.1:1", key, maxRetries: 0 });
    await assert.rejects(client.me(), vx.ConnectionError);
  }
  for (const rest of ["\nx", "\u0001", "\u2026", " x"]) {
    assert.throws(
      () => new vx.Client({ key: KEY + rest }),
      (error) => error instanceof TypeError && !inspect(error).includes(KEY),
    );
  }
});

test("a value of a wrong type is refused with the name of its field, before the call", async () => {
  const messages = [{ role: "user", content: "hello" }];
  const cases: [object, string][] = [
    [{ model: "x", messages, maxTokens: "5" }, "maxTokens: must be an integer"],
    [{ model: 5, messages }, "model: must be a string"],
    [{ model: "x", messages: [...messages, { role: "user", content: 5 }] }, "messages[1].content: must be a string"],
    [{ model: "x", messages: "hello" }, "messages: must be an array"],
  ];
  for (const [input, message] of cases) {
    let requests = 0;
    const answer = (response: ServerResponse) => {
      requests++;
      response.writeHead(500).end();
    };
    const error = await failureOf(answer, (client) => client.generate(input as vx.GenerateInput));
    assert.ok(error instanceof vx.InvalidRequestError, inspect(error));
    assert.equal(error.message, message);
    const stream = await failureOf(answer, async (client) => {
      for await (const _ of client.stream(input as vx.StreamInput));
    });
    assert.ok(stream instanceof vx.InvalidRequestError, inspect(stream));
    assert.equal(requests, 0);
  }
});

test("the error of an unreachable server names its address and the cause", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.close();
  await once(server, "close");
  const error = await new vx.Client({ url, key: KEY, maxRetries: 0 }).me().catch((thrown: unknown) => thrown);
  assert.ok(error instanceof vx.ConnectionError, inspect(error));
  assert.match(error.message, new RegExp(`^${url} cannot be reached: connect ECONNREFUSED`));
});
