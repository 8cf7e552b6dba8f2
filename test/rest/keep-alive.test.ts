import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { JSON_BODY } from "./answers.ts";
import { testFile } from "./descriptors.ts";
import { type Mounted, mount } from "./mount.ts";

const fileOf = (surface: Surface) =>
  testFile(
    { Ask: ["string kind"], Reply: ["string type"] },
    {
      Watch: {
        input: "Ask",
        output: "Reply",
        streams: true,
        http: { pattern: { case: "post", value: "/v1/watch" }, body: "*" },
      },
    },
    surface,
  );

let mounted: Mounted;
let tell: () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await mounted.stop();
});

async function serve(surface: Surface): Promise<void> {
  mounted = await mount(fileOf(surface), {
    methods: {
      watch: async function* () {
        for (;;) {
          const told = Promise.withResolvers<void>();
          tell = told.resolve;
          yield { type: "news" };
          await told.promise;
        }
      },
    },
  });
}

const DATA = 'data: {"type":"news"}\n\n';
const COMMENT = ": keep-alive\n\n";

test.each([
  ["comment", Surface.UNSPECIFIED, DATA, COMMENT],
  ["comment", Surface.OPENAI, DATA, COMMENT],
  ["comment", Surface.OPENAI_RESPONSES, `event: news\n${DATA}`, COMMENT],
  ["ping", Surface.ANTHROPIC, `event: news\n${DATA}`, 'event: ping\ndata: {"type": "ping"}\n\n'],
])("a %s is sent after every 15 s without an event (surface %i)", async (_name, surface, news, keepAlive) => {
  await serve(surface);
  const read = await watch();
  expect(await read()).toBe(news);
  vi.advanceTimersByTime(14_999);
  vi.advanceTimersByTime(1);
  expect(await read()).toBe(keepAlive);
  vi.advanceTimersByTime(15_000);
  expect(await read()).toBe(keepAlive);
  vi.advanceTimersByTime(14_999);
  tell();
  // No comment was sent before.
  expect(await read()).toBe(news);
  vi.advanceTimersByTime(14_999);
  tell();
  expect(await read()).toBe(news);
  vi.advanceTimersByTime(15_000);
  expect(await read()).toBe(keepAlive);
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
