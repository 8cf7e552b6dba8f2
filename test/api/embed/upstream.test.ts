import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { type Operator, operatorOf } from "../../support/fixtures.ts";
import { createModelsFile } from "../../support/models.ts";
import { chargesOf, createPaidKey, failureOf, openAi } from "../../support/openai.ts";

type Handler = (body: { readonly input: readonly string[] }, response: ServerResponse) => void;

const VECTOR = [0.25, 0.5];

let app: TestApp;
let operator: Operator;
let handler: Handler;
let received: { readonly path: string | undefined; readonly body: object }[] = [];
const server = createServer((request, response) => void serve(request, response));
let models: ReturnType<typeof createModelsFile>;

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { readonly input: readonly string[] };
  received.push({ path: request.url, body });
  handler(body, response);
}

function answer(usage?: object): Handler {
  return ({ input }, response) => {
    const data = input.map((_, index) => ({ object: "embedding", index, embedding: VECTOR }));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ object: "list", data: data.reverse(), model: "m", usage }));
  };
}

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const model = (id: string, kind: string) => ({
    id,
    context_window: 100,
    max_output_tokens: 10,
    input_micros_per_million_tokens: 1_000_000,
    output_micros_per_million_tokens: 0,
    capabilities: ["embeddings"],
    upstream: { kind, base_url, model: "fake" },
  });
  models = createModelsFile(JSON.stringify({ models: [model("vectors", "openai")] }));
  app = await startTestApp({ env: { VX_MODELS: models.path } });
  operator = operatorOf(app);
});
afterAll(async () => {
  await app.stop();
  models.remove();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => {
  received = [];
});

test("the upstream gets all texts at once, and its usage is charged", async () => {
  const payer = await createPaidKey(operator);
  handler = answer({ prompt_tokens: 9, total_tokens: 9 });
  const { data, usage } = await openAi(app, payer).embeddings.create({
    model: "vectors",
    input: ["one", "two"],
  });
  expect(data.map(({ embedding }) => embedding)).toEqual([VECTOR, VECTOR]);
  expect(received).toEqual([
    { path: "/v1/embeddings", body: { model: "fake", input: ["one", "two"], encoding_format: "base64" } },
  ]);
  expect(usage).toMatchObject({ prompt_tokens: 9, cost_micros: 9 });
  expect(await chargesOf(operator, payer)).toMatchObject([{ inputTokens: 9n, amountMicros: -9n }]);
});

test("without a usage, the tokens of the texts are counted", async () => {
  const payer = await createPaidKey(operator);
  handler = answer();
  await openAi(app, payer).embeddings.create({ model: "vectors", input: ["one two", "three"] });
  expect(await chargesOf(operator, payer)).toMatchObject([{ inputTokens: 3n, outputTokens: 0n }]);
});

test("each text may fill the context window", async () => {
  const payer = await createPaidKey(operator);
  handler = answer();
  const input = Array.from({ length: 5 }, () => "word ".repeat(60));
  await openAi(app, payer).embeddings.create({ model: "vectors", input });
  const failure = await failureOf(openAi(app, payer).embeddings.create({ model: "vectors", input: ["a", "word ".repeat(101)] }));
  expect(failure).toMatchObject({ status: 400, code: "context_length_exceeded", param: "input[1]" });
});

test("a failed call is not charged", async () => {
  const payer = await createPaidKey(operator);
  handler = (_, response) => response.writeHead(200, { "content-type": "application/json" }).end('{"data":[]}');
  const failure = await failureOf(openAi(app, payer).embeddings.create({ model: "vectors", input: "one" }));
  expect(failure.status).toBe(502);
  expect(await chargesOf(operator, payer)).toEqual([]);
});

test("a disconnect after the request was sent is charged", async () => {
  const payer = await createPaidKey(operator);
  const controller = new AbortController();
  handler = () => controller.abort();
  const call = openAi(app, payer).embeddings.create(
    { model: "vectors", input: ["one two", "three"] },
    { signal: controller.signal },
  );
  await expect(call).rejects.toThrow();
  await vi.waitFor(async () => expect(await chargesOf(operator, payer)).toMatchObject([{ inputTokens: 3n, outputTokens: 0n }]));
});
