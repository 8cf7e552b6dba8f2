import { expect, test } from "vitest";
import { ModelSchema } from "../../gen/vx/v1/model_pb.js";
import { Schemas } from "../../tools/openapi/schemas.ts";
import { testFile } from "./descriptors.ts";

const http = { pattern: { case: "post", value: "/v1/say" }, body: "*" } as const;
const { service } = testFile({ Model: ["string text"] }, { Say: { input: "Model", output: "Model", http } });
const other = service.methods[0]?.output ?? ModelSchema;

test("a name that stands for two messages stops the generator", () => {
  const schemas = new Schemas(() => "");
  expect(schemas.response(ModelSchema)).toEqual(schemas.response(ModelSchema));
  expect(() => schemas.response(other)).toThrow(
    "the schema name Model stands for vx.v1.Model (response) and test.v1.Model (response)",
  );
  expect(() => schemas.body(ModelSchema, ModelSchema.fields, "refuse")).toThrow("vx.v1.Model (body)");
});
