import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { JSON_BODY } from "./answers.ts";
import { testFile } from "./descriptors.ts";
import { type Mounted, mount } from "./mount.ts";

const file = testFile(
  { Ask: ["string kind"], Reply: ["string text"] },
  {
    Watch: {
      input: "Ask",
      output: "Reply",
      streams: true,
      http: { pattern: { case: "post", value: "/v1/watch" }, body: "*" },
    },
  },
);

let mounted: Mounted;
let tell: () => void;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  mounted = await mount(file, {
    methods: {
      watch: async function* () {
        for (;;) {
          const told = Promise.withResolvers<void>();
          tell = told.resolve;
          yield { text: "news" };
          await told.promise;
        }
      },
    },
  });
});
afterEach(async () => {
  vi.useRealTimers();
  await mounted.stop();
});

const NEWS = 'data: {"text":"news"}\n\n';
const COMMENT = ": keep-alive\n\n";

test("a comment is sent after every 15 s without an event", async () => {
  const read = await watch();
  expect(await read()).toBe(NEWS);
  vi.advanceTimersByTime(14_999);
  vi.advanceTimersByTime(1);
  expect(await read()).toBe(COMMENT);
  vi.advanceTimersByTime(15_000);
  expect(await read()).toBe(COMMENT);
  vi.advanceTimersByTime(14_999);
  tell();
  // No comment was sent before.
  expect(await read()).toBe(NEWS);
  vi.advanceTimersByTime(14_999);
  tell();
  expect(await read()).toBe(NEWS);
  vi.advanceTimersByTime(15_000);
  expect(await read()).toBe(COMMENT);
});

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
