import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { type Operator, operatorOf } from "../../support/fixtures.ts";
import { createModelsFile } from "../../support/models.ts";
import { chargesOf, createPaidKey, failureOf, openAi } from "../../support/openai.ts";

let app: TestApp;
let operator: Operator;
let reply: readonly string[] = [];
let contentType = "text/event-stream";
const received: { readonly path: string | undefined; readonly body: object }[] = [];
const server = createServer((request, response) => void serve(request, response));
let models: ReturnType<typeof createModelsFile>;

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  received.push({ path: request.url, body: JSON.parse(Buffer.concat(chunks).toString("utf8")) as object });
  response.setHeader("content-type", contentType);
  response.end(reply.join(""));
}

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

const USAGE = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const model = (id: string, kind: string) => ({
    id,
    context_window: 1_000,
    max_output_tokens: 100,
    input_micros_per_million_tokens: 1_000_000,
    output_micros_per_million_tokens: 2_000_000,
    upstream: { kind, base_url, model: "fake" },
  });
  models = createModelsFile(JSON.stringify({ models: [model("coder", "openai"), model("claude", "anthropic")] }));
  app = await startTestApp({ env: { VX_MODELS: models.path } });
  operator = operatorOf(app);
});
afterAll(async () => {
  await app.stop();
  models.remove();
  await new Promise((resolve) => server.close(resolve));
});

const BODY = {
  model: "coder",
  prompt: "def f():",
  suffix: "return x",
  max_tokens: 20,
  stop: "\n\n",
  seed: 3,
};

test("the upstream gets the prompt and the suffix, and its usage is charged", async () => {
  const payer = await createPaidKey(operator);
  contentType = "text/event-stream";
  reply = [
    event({ object: "text_completion", choices: [{ index: 0, text: " x ", finish_reason: null }] }),
    event({ object: "text_completion", choices: [{ index: 0, text: "= 1", finish_reason: null }] }),
    event({ object: "text_completion", choices: [{ index: 0, text: "", finish_reason: "length" }] }),
    event({ object: "text_completion", choices: [], usage: USAGE }),
    "data: [DONE]\n\n",
  ];
  const { choices, usage } = await openAi(app, payer).completions.create(BODY);
  expect(choices).toMatchObject([{ text: " x = 1", finish_reason: "length" }]);
  expect(usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 4, cost_micros: 17 });
  expect(received.pop()).toEqual({
    path: "/v1/completions",
    body: {
      model: "fake",
      prompt: "def f():",
      suffix: "return x",
      max_tokens: 20,
      stop: ["\n\n"],
      seed: 3,
      stream: true,
      stream_options: { include_usage: true },
    },
  });
  expect(await chargesOf(operator, payer)).toMatchObject([{ inputTokens: 9n, outputTokens: 4n }]);
});

test("a completion that is not streamed is read as well", async () => {
  const payer = await createPaidKey(operator);
  contentType = "application/json";
  reply = [JSON.stringify({ choices: [{ index: 0, text: "y", finish_reason: "stop" }], usage: USAGE })];
  expect((await openAi(app, payer).completions.create(BODY)).choices).toMatchObject([{ text: "y" }]);
});

test.each([
  ["no choices", "application/json", "{}"],
  ["an error", "application/json", '{"error":{"message":"no"}}'],
  ["no end", "text/event-stream", event({ choices: [{ index: 0, text: "y", finish_reason: null }] })],
])("a response with %s is a failure, which is free", async (_, type, text) => {
  const payer = await createPaidKey(operator);
  contentType = type;
  reply = [text];
  expect((await failureOf(openAi(app, payer).completions.create(BODY))).status).toBe(502);
  expect(await chargesOf(operator, payer)).toEqual([]);
});

test("a model whose upstream has no completions is refused", async () => {
  const payer = await createPaidKey(operator);
  const failure = await failureOf(openAi(app, payer).completions.create({ ...BODY, model: "claude" }));
  expect(failure).toMatchObject({ status: 400, param: "model" });
  expect(failure.message).toContain("/v1/chat/completions");
});
