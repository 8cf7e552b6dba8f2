import { describe, expect, test } from "vitest";
import { ModelService } from "../../../gen/vx/v1/model_pb.js";
import { useTestApp } from "../../support/app.ts";
import { useTestKey } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

const app = useTestApp();
const key = useTestKey(app);

const UNKNOWN = ["none", "VX-SANDBOX-SMALL", "vx-sandbox-small ", "constructor", "__proto__", "<b>🔑</b>"];

describe.each(protocols)("$name", ({ open }) => {
  test.each(UNKNOWN)("%s is an unknown model", async (model) => {
    const caller = open(app.url);
    const outcome = await caller.call(ModelService.method.getModel, { model }, bearer(key.secret));
    caller.close();
    expect(outcome).toMatchObject({ code: "not_found", reason: "model_not_found", fields: ["model"] });
  });
});

test("REST returns 404 with the reason and the requested model", async () => {
  const answer = await fetch(`${app.url}/v1/models/none`, { headers: bearer(key.secret) });
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({
    error: {
      code: "model_not_found",
      message: 'There is no model "none". GET /v1/models lists the models.',
      param: "model",
    },
  });
});
