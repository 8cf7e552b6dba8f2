import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { badRequestAnswers } from "../../src/transport/bad-request.ts";
import { send } from "../../src/transport/http.ts";
import { Listener } from "../../src/transport/listener.ts";
import { END_HEADERS, FLOODS, flood, frame, REQUEST } from "../support/http2-flood.ts";
import { sendHttp1 } from "../support/raw.ts";

let listener: Listener;
let url: string;
let served: number;

beforeEach(async () => {
  served = 0;
  listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    handler: (_request, response) => {
      served++;
      send(response, 200, "text/plain", "ok");
    },
    ...badRequestAnswers(() => "req_test"),
  });
  url = `http://127.0.0.1:${(await listener.open()).port}`;
});
afterEach(() => listener.close(0));

const MANY_BYTES = 64 * 1_048_576;

describe("a connection that floods is ended, and others are served meanwhile", () => {
  test.each(Object.entries(FLOODS))("with %s", async (_name, next) => {
    const [sent, answer] = await Promise.all([
      flood(url, next, MANY_BYTES),
      sendHttp1(url, { path: "/", method: "GET" }),
    ]);
    expect(sent).toBeLessThan(MANY_BYTES);
    expect(answer.status).toBe(200);
    expect(served).toBeLessThan(20_000);
  });
});

test("empty frames of a body cost nothing that grows", async () => {
  const before = process.memoryUsage().heapUsed;
  const empty = Buffer.concat(Array(1_000).fill(frame(0, 0, 1, Buffer.alloc(0))));
  await flood(url, (round) => (round === 0 ? frame(1, END_HEADERS, 1, REQUEST) : empty), 8 * 1_048_576);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1_048_576);
});
