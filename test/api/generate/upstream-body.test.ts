import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOpenaiDialect } from "../../../src/upstreams/openai/dialect.ts";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { FakeUpstream } from "../../support/fake-upstreams/fake-upstream.ts";
import { requestProblems } from "../../support/fake-upstreams/request-schemas.ts";
import { WIRES_OF_KIND } from "../../support/fake-upstreams/wire.ts";
import { operatorOf, type TestKey } from "../../support/fixtures.ts";
import { type GenerateFields, openGenerator } from "../../support/generators.ts";
import { createModelsFile } from "../../support/models.ts";
import { createPaidKey, openAi } from "../../support/openai.ts";
import { promptOf } from "../../support/samples.ts";
import { started } from "../../support/started.ts";

const TEXT = "Hello, world.";
/** Longer than one write of the server. */
const LONG = "a long text ".repeat(10_000);

const WIRES = Object.values(WIRES_OF_KIND).flatMap(([wire]) => wire ?? []);
const CONVERSATIONS: readonly { name: string; request: Omit<GenerateFields, "model"> }[] = [
  { name: "one message", request: { messages: [{ role: "user", content: "Hello" }] } },
  {
    name: "every role and every parameter",
    request: {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "One." },
        { role: "user", content: "" },
        { role: "system", content: "Be kind." },
        { role: "assistant", content: "Yes?" },
        { role: "user", content: "Two." },
      ],
      maxTokens: 7,
      temperature: 1.5,
    },
  },
  {
    name: "stop sequences",
    request: { messages: [{ role: "user", content: "Hello" }], stop: ["END", "\n\n."] },
  },
  { name: "a long message", request: { messages: [{ role: "user", content: LONG }], temperature: 0 } },
];

let app: TestApp;
let key: TestKey;
let upstreams: FakeUpstream[];
let models: ReturnType<typeof createModelsFile>;

beforeAll(async () => {
  upstreams = await Promise.all(WIRES.map((wire) => FakeUpstream.start({ wire })));
  models = createModelsFile(
    JSON.stringify({
      models: upstreams.map((upstream, i) => ({
        id: WIRES[i]?.kind,
        context_window: 1_000_000,
        max_output_tokens: 100,
        input_micros_per_million_tokens: 1,
        output_micros_per_million_tokens: 1,
        upstream: { kind: WIRES[i]?.kind, base_url: upstream.baseUrl, model: "fake-model" },
      })),
    }),
  );
  app = await startTestApp({ env: { VX_MODELS: models.path, VX_LOG_LEVEL: "warn" } });
  key = await createPaidKey(operatorOf(app));
});
afterAll(async () => {
  await app.stop();
  await Promise.all(upstreams.map((upstream) => upstream.stop()));
  models.remove();
});

/** The Responses API has no stop sequences. */
const CASES = WIRES.flatMap(({ kind }) =>
  CONVERSATIONS.filter(({ request }) => kind !== "openai-responses" || !request.stop).map(({ name, request }) => ({
    kind,
    name,
    request: { model: kind, ...request },
  })),
);

const generator = started(() => openGenerator(app.url));

test.each(CASES)("a strict $kind upstream accepts $name", async ({ request }) => {
  const { message } = await generator.generate(request, { secret: key.secret });
  expect(message?.content).toBe(TEXT);
});

test.each(CASES)("a strict $kind upstream accepts $name, streamed", async ({ request }) => {
  let text = "";
  for await (const { event } of generator.stream(request, { secret: key.secret })) {
    if (event.case === "delta") text += event.value.content;
  }
  expect(text).toBe(TEXT);
});

describe("over /v1/chat/completions", () => {
  const bodyOf = ({ model, messages, maxTokens, temperature, stop }: GenerateFields) => ({
    model,
    // With members of OpenAI's format that are not sent to upstreams.
    messages: messages.map(({ role, content }) => ({
      role: role as "user",
      content: [{ type: "text" as const, text: content ?? "" }],
      name: "ada",
    })),
    ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(stop === undefined ? {} : { stop }),
    user: "ada",
  });

  test.each(CASES)("a strict $kind upstream accepts $name", async ({ request }) => {
    const { choices } = await openAi(app, key).chat.completions.create(bodyOf(request));
    expect(choices[0]?.message.content).toBe(TEXT);
  });

  test.each(CASES)("a strict $kind upstream accepts $name, streamed", async ({ request }) => {
    let text = "";
    const stream = await openAi(app, key).chat.completions.create({ ...bodyOf(request), stream: true });
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    expect(text).toBe(TEXT);
  });
});

test("the body for openai.com is valid too", () => {
  const { body } = createOpenaiDialect({ baseUrl: "https://api.openai.com/v1" });
  const sent: unknown = JSON.parse(JSON.stringify(body(promptOf(), "m")));
  expect(requestProblems("openai", sent)).toEqual([]);
});

test("the validator rejects unknown members and null", () => {
  const body = { model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hello" }] };
  for (const kind of ["openai", "anthropic"] as const) {
    expect(requestProblems(kind, body)).toEqual([]);
    expect(requestProblems(kind, { ...body, temperature: null })).not.toEqual([]);
    expect(requestProblems(kind, { ...body, extra: 1 })).not.toEqual([]);
    const messages = [{ $typeName: "vx.v1.Message", role: "user", content: "Hello" }];
    expect(requestProblems(kind, { ...body, messages })).not.toEqual([]);
  }
});

test("a prompt that the upstream does not support is refused before a request is sent", async () => {
  const calls = upstreams.map((upstream) => upstream.calls.length);
  const response = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "openai-responses",
      messages: [{ role: "user", content: "Hello" }],
      stop: ["END"],
    }),
  });
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { error: { code: "invalid_argument", message: "stop: is not supported by the upstream of this model" } },
  ]);
  expect(upstreams.map((upstream) => upstream.calls.length)).toEqual(calls);
});
