import { describe, expect, test } from "vitest";
import { ModelService } from "../../../gen/vx/v1/model_pb.js";
import { useTestApp } from "../../support/app.ts";
import { useTestKey } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

const app = useTestApp();
const key = useTestKey(app);

const token = (text: string) => Buffer.from(text).toString("base64url");

describe.each(protocols)("$name", ({ open }) => {
  test.each([
    { what: "a negative size", request: { pageSize: -1 }, field: "page_size" },
    { what: "an invalid token", request: { pageToken: "x" }, field: "page_token" },
    { what: "a token of another list", request: { pageToken: token("keys:a") }, field: "page_token" },
    {
      what: "an invalid position in a token",
      request: { pageToken: token("models:a b") },
      field: "page_token",
    },
    { what: "a negative limit", request: { limit: -1 }, field: "limit" },
    { what: "a limit beside another size", request: { limit: 1, pageSize: 2 }, field: "limit" },
    { what: "an id on both sides", request: { afterId: "a", beforeId: "b" }, field: "before_id" },
    {
      what: "a token beside an id",
      request: { pageToken: token("models:a"), afterId: "a" },
      field: "page_token",
    },
  ])("$what is a 400 that names $field", async ({ request, field }) => {
    const caller = open(app.url);
    const outcome = await caller.call(ModelService.method.listModels, request, bearer(key.secret));
    caller.close();
    expect(outcome).toMatchObject({ reason: "invalid_argument", fields: [field] });
  });
});
