import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";

let app: TestApp;
let secret: string;

beforeAll(async () => {
  app = await startTestApp();
  ({ secret } = await createTestKey(operatorOf(app)));
});
afterAll(() => app.stop());

describe("a list of very many items is refused by its length, not item by item", () => {
  test.each(protocols)("$name", async ({ open }) => {
    const caller = open(app.url);
    const scopes = Array<string>(5_000).fill("x");
    const outcome = await caller.call(KeyService.method.createKey, { name: "many", scopes }, bearer(secret));
    expect(outcome).toMatchObject({ ok: false, reason: "invalid_argument", fields: ["scopes"] });
    caller.close();
  });

  test("REST", async () => {
    const body = `{"name":"many","scopes":[${Array<string>(1_000_000).fill('"x"').join(",")}]}`;
    const headers = { "content-type": "application/json", ...bearer(secret) };
    const answer = await sendHttp1(app.url, { path: "/v1/keys", headers, body });
    expect(answer.status).toBe(400);
    expect(answer.body.length).toBeLessThan(1_000);
    expect(JSON.parse(answer.body.toString()).error.param).toBe("scopes");
  });
});
