import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { DomainError } from "../../src/domain/errors.ts";
import { KEEP_ALIVE_MS } from "../../src/server/wire/rest.ts";
import { testFile } from "./descriptors.ts";
import { type Mounted, mount } from "./mount.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

type Ask = { readonly model: string };

/** A service at the address that a client uses; its events have only the fields that these tests read. */
function serve(path: string, surface: Surface): Promise<Mounted> {
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
  async function* streamSay({ model }: Ask) {
    yield { type: "say.delta", sequenceNumber: 0, delta: "hel" };
    vi.advanceTimersByTime(KEEP_ALIVE_MS);
    yield { type: "say.delta", sequenceNumber: 1, delta: "lo" };
    if (model === "fails") throw new DomainError("upstream_error", { message: "gone" });
  }
  return mount(file, { methods: { say, streamSay }, unknownFields: "ignore" });
}

async function eventsOf(stream: PromiseLike<AsyncIterable<unknown>>, events: unknown[] = []) {
  for await (const event of await stream) events.push(event);
  return events;
}

/** The events before a failure, and the failure. */
async function failureOf(stream: PromiseLike<AsyncIterable<unknown>>) {
  const events: unknown[] = [];
  const error = await eventsOf(stream, events).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return { events, error };
}

const EVENTS = [
  { type: "say.delta", sequence_number: 0, delta: "hel" },
  { type: "say.delta", sequence_number: 1, delta: "lo" },
];

describe("the OpenAI client reads", () => {
  let mounted: Mounted;
  let client: OpenAI;
  beforeAll(async () => {
    mounted = await serve("/v1/responses", Surface.OPENAI_RESPONSES);
    client = new OpenAI({ baseURL: `${mounted.url}/v1`, apiKey: "any", maxRetries: 0 });
  });
  afterAll(() => mounted.stop());

  const stream = (model: string) => client.responses.create({ model, input: "x", stream: true });

  test("the events of a Responses stream and ignores keep-alives", async () => {
    expect(await eventsOf(stream("any"))).toEqual(EVENTS);
  });

  test("an error after the first event", async () => {
    const { events, error } = await failureOf(stream("fails"));
    expect(events).toEqual(EVENTS);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ code: "upstream_error", type: "api_error", message: "gone" });
  });
});

describe("Anthropic's client reads", () => {
  let mounted: Mounted;
  let client: Anthropic;
  beforeAll(async () => {
    mounted = await serve("/v1/messages", Surface.ANTHROPIC);
    client = new Anthropic({ baseURL: mounted.url, authToken: "any", maxRetries: 0 });
  });
  afterAll(() => mounted.stop());

  const ask = (model: string) => ({ model, max_tokens: 5, messages: [] });
  const stream = (model: string) => client.messages.create({ ...ask(model), stream: true });

  test("the events of a stream and ignores pings", async () => {
    expect(await eventsOf(stream("any"))).toEqual(EVENTS);
  });

  test("an error after the first event", async () => {
    const { events, error } = await failureOf(stream("fails"));
    expect(events).toEqual(EVENTS);
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect(error).toMatchObject({ type: "api_error", apiMessage: "gone" });
  });

  test("a unary response, whose request id it shows", async () => {
    expect(await client.messages.create(ask("any"))).toMatchObject({
      type: "said",
      delta: "hello",
      _request_id: "req_test",
    });
  });

  test.each([
    ["an error response", () => client.messages.create(ask("unknown"))],
    ["an error at an address without a route", () => client.messages.countTokens(ask("any"))],
  ])("%s", async (_name, call) => {
    const error = await Promise.resolve(call()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    expect(error).toMatchObject({ type: "not_found_error", requestID: "req_test" });
  });
});
