import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { createTestKey, type Operator, operatorOf } from "../../support/fixtures.ts";
import { createModelsFile } from "../../support/models.ts";
import { bearer } from "../../support/protocols.ts";

const model = (id: string, prices: string) => `  - id: ${id}
    context_window: 1000
    max_output_tokens: 50
    image_tokens: 10
    capabilities: [images]
    prices: ${prices}
    upstream: {kind: sandbox}
`;
const file = createModelsFile(
  `models:
${model("free", "{input: 0, output: 0}")}${model("flat", "{input: 0, output: 0, request: 700}")}${model("pictures", "{input: 0, output: 0, request: 5, image: 100}")}`,
);
let app: TestApp;
let operator: Operator;

beforeAll(async () => {
  app = await startTestApp({ env: { VX_MODELS: file.path } });
  operator = operatorOf(app);
});
afterAll(async () => {
  expect(await operator.audit({})).toMatchObject({ consistent: true });
  await app.stop();
  file.remove();
});

async function call(model: string, balanceMicros: bigint, images = 0) {
  const key = await createTestKey(operator);
  const { accountId } = key;
  if (balanceMicros > 0n)
    await operator.creditAccount({
      accountId,
      amountMicros: balanceMicros,
      reason: "test",
      idempotencyKey: "1",
    });
  const image = { type: "image_url", image_url: { url: "https://x.example/a.png" } };
  const content = [{ type: "text", text: "Hi" }, ...Array.from({ length: images }, () => image)];
  const answer = await fetch(`${app.url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content }], max_tokens: 5 }),
  });
  const { account } = await operator.getAccount({ accountId });
  expect(account?.heldMicros).toBe(0n);
  const body = (await answer.json()) as { error?: { code: string } };
  return { status: answer.status, body, balance: account?.balanceMicros };
}

test("a free model needs no balance", async () => {
  const { status, balance } = await call("free", 0n);
  expect({ status, balance }).toEqual({ status: 200, balance: 0n });
});

test("a flat price per request is charged once, whatever the tokens", async () => {
  const { status, balance } = await call("flat", 1_000n);
  expect({ status, balance }).toEqual({ status: 200, balance: 300n });
});

test("a balance below the flat price is refused, and nothing is charged", async () => {
  const { status, body, balance } = await call("flat", 699n);
  expect({ status, balance }).toEqual({ status: 402, balance: 699n });
  expect(body.error?.code).toBe("insufficient_balance");
});

test("a price per image is charged for each image of the request", async () => {
  expect(await call("pictures", 1_000n, 3)).toMatchObject({ status: 200, balance: 695n });
  expect(await call("pictures", 304n, 3)).toMatchObject({ status: 402, balance: 304n });
});
