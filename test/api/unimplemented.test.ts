import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { openAny } from "../support/any-method.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";

let app: TestApp;
let key: TestKey;

beforeAll(async () => {
  app = await startTestApp();
  key = await createTestKey(operatorOf(app));
});
afterAll(() => app.stop());

/** Behind the gate there is nothing yet; this file goes when there is. */
describe.each(protocols)("$name", (protocol) => {
  test.each([...GenerateService.methods, ...ModelService.methods])("$name", async (method) => {
    const caller = openAny(protocol, app.url);
    const ending = await caller.end(method, bearer(key.secret));
    caller.close();
    expect(["unimplemented", "invalid_argument"]).toContain(ending.code);
  });
});
