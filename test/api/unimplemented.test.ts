import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
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

/** Behind the gate and the validation there is nothing yet; this file goes when there is. */
describe.each(protocols)("$name", (protocol) => {
  test("unary generation", async () => {
    const caller = protocol.open(app.url);
    const messages = [{ role: "user", content: "hello" }];
    const request = { model: "x", messages };
    const outcome = await caller.call(GenerateService.method.generate, request, bearer(key.secret));
    caller.close();
    expect(outcome).toMatchObject({ code: "unimplemented", reason: "unimplemented" });
    expect(outcome.headers).toHaveProperty("ratelimit");
  });

  test("streamed generation", async () => {
    const caller = openAny(protocol, app.url);
    const ending = await caller.end(GenerateService.method.streamGenerate, bearer(key.secret));
    caller.close();
    expect(["unimplemented", "invalid_argument"]).toContain(ending.code);
  });
});
