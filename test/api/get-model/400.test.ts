import { describe, expect, test } from "vitest";
import { ModelService } from "../../../gen/vx/v1/model_pb.js";
import { useTestApp } from "../../support/app.ts";
import { useTestKey } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

const app = useTestApp();
const key = useTestKey(app);

describe.each(protocols)("$name", ({ open }) => {
  test.each([
    { what: "no id", model: "" },
    { what: "an id of 201 characters", model: "m".repeat(201) },
    { what: "a control character", model: "a\u0007" },
  ])("$what is a 400 that names model", async ({ model }) => {
    const caller = open(app.url);
    const outcome = await caller.call(ModelService.method.getModel, { model }, bearer(key.secret));
    caller.close();
    expect(outcome).toMatchObject({ reason: "invalid_argument", fields: ["model"] });
  });
});
