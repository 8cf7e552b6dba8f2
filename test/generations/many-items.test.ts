import { beforeAll, describe, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";

let secret: string;

const app = useTestApp();
beforeAll(async () => {
  ({ secret } = await createTestKey(operatorOf(app)));
});

/** JSON and binary. */
const encodings = protocols.filter(({ name }) => name.startsWith("Connect"));

describe("a list with too many items is rejected by its length, without validating each item", () => {
  test.each(encodings)("$name", async ({ open }) => {
    const caller = open(app.url);
    const scopes = Array<string>(5_000).fill("x");
    const outcome = await caller.call(KeyService.method.createKey, { name: "many", scopes }, bearer(secret));
    expect(outcome).toMatchObject({ ok: false, reason: "invalid_argument", fields: ["scopes"] });
    caller.close();
  });

  test.each(encodings)("$name, with a method that accepts large requests", async ({ open }) => {
    const caller = open(app.url);
    const messages = Array(20_000).fill({ role: "user", content: "" });
    const { generate } = GenerateService.method;
    const outcome = await caller.call(generate, { model: "m", messages }, bearer(secret));
    expect(outcome).toMatchObject({ ok: false, reason: "invalid_argument", fields: ["messages"] });
    caller.close();
  });

  test.each([
    ["/v1/keys", `{"name":"many","scopes":[${Array<string>(10_000).fill('"x"').join(",")}]}`, "scopes"],
    ["/v1/generate", `{"stop":[${Array<string>(200_000).fill('"x"').join(",")}]}`, "stop"],
  ])("REST, %s", async (path, body, field) => {
    const headers = { "content-type": "application/json", ...bearer(secret) };
    const answer = await sendHttp1(app.url, { path, headers, body });
    expect(answer.status).toBe(400);
    expect(answer.body.length).toBeLessThan(1_000);
    expect(JSON.parse(answer.body.toString()).error.param).toBe(field);
  });
});
