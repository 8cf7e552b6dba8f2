import { beforeAll, describe, expect, test } from "vitest";
import type { TestApp } from "../support/app.ts";
import type { TestKey } from "../support/fixtures.ts";
import { useMetered, WIDE_MODEL } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";
import { expectError, https, JSON_BODY, jsonOf } from "./answers.ts";

let app: TestApp;
let key: TestKey;

const metered = useMetered();
beforeAll(async () => {
  app = metered.app;
  key = await metered.payer(1_000_000n);
});

const ASTRAL = "\u{1f600}";
const said = (content: string) => ({ role: "user", content });
const hello = said("hello");

// Each limit is accepted; a value beyond it is rejected with the name of the field.
describe.each(https)("over $name", ({ send }) => {
  const generate = (fields: object, escaped = false) => {
    const text = JSON.stringify({ model: WIDE_MODEL, messages: [hello], ...fields });
    const body = escaped
      ? text.replaceAll(/[\ud800-\udfff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`)
      : text;
    return send(app.url, { path: "/v1/generate", headers: { ...JSON_BODY, ...bearer(key.secret) }, body });
  };

  describe.each([{ stream: false }, { stream: true }])("with %j", (kind) => {
    test.each([
      ["one message", { messages: [hello] }],
      ["200 messages", { messages: Array(200).fill(hello) }],
      ["every role", { messages: ["system", "user", "assistant"].map((role) => ({ role, content: "" })) }],
      ["400,000 characters", { messages: [said("x".repeat(400_000))] }],
      ["400,000 characters of four bytes", { messages: [said(ASTRAL.repeat(400_000))] }],
      ["max_tokens 1", { max_tokens: 1 }],
      ["max_tokens 32,000", { max_tokens: 32_000 }],
      ["temperature 0", { temperature: 0 }],
      ["temperature -0", { temperature: -0 }],
      ["temperature 2", { temperature: 2 }],
      ["four stops of 200 characters", { stop: Array(4).fill(ASTRAL.repeat(200)) }],
    ])("%s is accepted", async (_name, fields) => {
      const answer = await generate({ ...fields, ...kind });
      expect(answer.status, answer.body.toString("utf8", 0, 1_000)).toBe(200);
      expect(answer.body.toString()).toContain("world");
    });

    test.each([
      ["no message", { messages: [] }, "messages"],
      ["201 messages", { messages: Array(201).fill(hello) }, "messages"],
      ["another role", { messages: [hello, { role: "function", content: "" }] }, "messages[1].role"],
      ["no role", { messages: [{ content: "" }] }, "messages[0].role"],
      ["no content", { messages: [hello, { role: "user" }] }, "messages[1].content"],
      ["content that is null", { messages: [{ role: "user", content: null }] }, "messages[0].content"],
      ["400,001 characters", { messages: [hello, said("x".repeat(400_001))] }, "messages[1].content"],
      [
        "400,001 characters of four bytes",
        { messages: [said(ASTRAL.repeat(400_001))] },
        "messages[0].content",
      ],
      ["max_tokens 0", { max_tokens: 0 }, "max_tokens"],
      ["max_tokens -1", { max_tokens: -1 }, "max_tokens"],
      ["max_tokens 32,001", { max_tokens: 32_001 }, "max_tokens"],
      ["temperature -0.1", { temperature: -0.1 }, "temperature"],
      ["temperature 2.1", { temperature: 2.1 }, "temperature"],
      ["five stops", { stop: Array(5).fill("x") }, "stop"],
      ["an empty stop", { stop: ["x", ""] }, "stop[1]"],
      ["a stop of 201 characters", { stop: [ASTRAL.repeat(201)] }, "stop[0]"],
      ["no model", { model: "" }, "model"],
      ["a model of 201 characters", { model: "m".repeat(201) }, "model"],
    ])("%s is rejected with the name of the field", async (_name, fields, field) => {
      const { message } = expectError(await generate({ ...fields, ...kind }), "invalid_argument", field);
      expect(message).toContain(field);
    });
  });

  test("400,000 escaped characters of four bytes are accepted, one more is rejected", async () => {
    expect(await generate({ messages: [said(ASTRAL.repeat(400_000))] }, true)).toMatchObject({ status: 200 });
    const more = await generate({ messages: [said(ASTRAL.repeat(400_001))] }, true);
    expectError(more, "invalid_argument", "messages[0].content");
  });

  test("the error lists every invalid field, the first one as param", async () => {
    const answer = await generate({
      model: "",
      max_tokens: 0,
      temperature: 3,
      messages: [{ role: "x", content: "" }, hello],
    });
    const { details } = expectError(answer, "invalid_argument", "model");
    const { field_violations: violations } = details[1] as unknown as {
      field_violations: { field: string }[];
    };
    expect(violations.map(({ field }) => field).sort()).toEqual([
      "max_tokens",
      "messages[0].role",
      "model",
      "temperature",
    ]);
  });

  test("a name of 100 characters is accepted, one of 101 is rejected", async () => {
    const headers = { ...JSON_BODY, ...bearer(key.secret) };
    const create = (name: string) =>
      send(app.url, { path: "/v1/keys", headers, body: JSON.stringify({ name }) });
    expect(jsonOf(await create(ASTRAL.repeat(100))).secret).toMatch(/^vx_live_/);
    expectError(await create(ASTRAL.repeat(101)), "invalid_argument", "name");
  });
});
