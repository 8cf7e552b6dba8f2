import OpenAI from "openai";
import { expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { failureOf, openAi, SMALL } from "../support/openai.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const key = useTestKey(app);
const client = started(() => openAi(app, key));

test("the SDK lists the models", async () => {
  const page = await client.models.list();
  expect(page.object).toBe("list");
  expect(page.hasNextPage()).toBe(false);
  const ids: string[] = [];
  for await (const { id, ...rest } of client.models.list()) {
    expect(rest).toMatchObject({ object: "model", created: expect.any(Number), owned_by: "vx" });
    ids.push(id);
  }
  expect(ids).toEqual(["vx-sandbox-embed", "vx-sandbox-large", SMALL]);
});

test("the SDK sets the size of the page by a query parameter", async () => {
  const page = await client.models.list({ query: { page_size: 2 } });
  expect(page.data.map(({ id }) => id)).toEqual(["vx-sandbox-embed", "vx-sandbox-large"]);
});

test("the SDK gets a model by its id", async () => {
  expect(await client.models.retrieve(SMALL)).toMatchObject({ id: SMALL, object: "model" });
});

test("an unknown model is a NotFoundError", async () => {
  const error = await failureOf(client.models.retrieve("gpt-4o"));
  expect(error).toBeInstanceOf(OpenAI.NotFoundError);
  expect(error).toMatchObject({ status: 404, code: "model_not_found", param: "model" });
});
