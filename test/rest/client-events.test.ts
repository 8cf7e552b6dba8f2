import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { DomainError } from "../../src/domain/errors.ts";
import { KEEP_ALIVE_MS } from "../../src/server/wire/rest.ts";
import { started } from "../support/started.ts";
import { testFile } from "./descriptors.ts";
import { mount } from "./mount.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

type Ask = { readonly model: string };

/** A service at the address that a client uses; its events have only the fields that these tests read. */
function serve(path: string, surface: Surface) {
  const http = { pattern: { case: "post", value: path }, body: "*" } as const;
  const file = testFile(
    { Ask: ["string model", "bool stream"], Event: ["string type", "int32 sequence_number", "string delta"] },
    {
      Say: { input: "Ask", output: "Event", http },
      StreamSay: { input: "Ask", output: "Event", streams: true, http, selectedBy: "stream" },
    },
    surface,
  );
  const say = ({ model }: Ask) => {
    if (model === "unknown") throw new DomainError("model_not_found");
    return { type: "said", delta: "hello" };
  };
  async function* streamSay() {
    yield { type: "say.delta", sequenceNumber: 0, delta: "hel" };
    vi.advanceTimersByTime(KEEP_ALIVE_MS);
    yield { type: "say.delta", sequenceNumber: 1, delta: "lo" };
  }
  return mount(file, { methods: { say, streamSay }, unknownFields: "ignore" });
}

async function expectEvents(stream: PromiseLike<AsyncIterable<unknown>>) {
  const events: unknown[] = [];
  for await (const event of await stream) events.push(event);
  expect(events).toEqual([
    { type: "say.delta", sequence_number: 0, delta: "hel" },
    { type: "say.delta", sequence_number: 1, delta: "lo" },
  ]);
}

const responses = started(() => serve("/v1/responses", Surface.OPENAI_RESPONSES));
const messages = started(() => serve("/v1/messages", Surface.ANTHROPIC));
const anthropic = started(() => new Anthropic({ baseURL: messages.url, authToken: "any", maxRetries: 0 }));
const ask = (model: string) => ({ model, max_tokens: 5, messages: [] });

test("the OpenAI client reads the events of a Responses stream and ignores keep-alives", async () => {
  const client = new OpenAI({ baseURL: `${responses.url}/v1`, apiKey: "any", maxRetries: 0 });
  await expectEvents(client.responses.create({ model: "any", input: "x", stream: true }));
});

test("Anthropic's client reads the events of a stream and ignores pings", async () => {
  await expectEvents(anthropic.messages.create({ ...ask("any"), stream: true }));
});

test("Anthropic's client shows the request id of a response and of an error", async () => {
  const { _request_id, ...event } = await anthropic.messages.create(ask("any"));
  expect({ _request_id, event }).toMatchObject({ _request_id: "req_test", event: { type: "said", delta: "hello" } });
  for (const failing of [anthropic.messages.create(ask("unknown")), anthropic.messages.countTokens(ask("any"))]) {
    const error = await Promise.resolve(failing).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    expect(error).toMatchObject({ type: "not_found_error", requestID: "req_test" });
  }
});
