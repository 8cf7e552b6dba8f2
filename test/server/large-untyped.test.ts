import { fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { expectNoFailures, useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { refusalOf, wires } from "../support/request-bytes.ts";

let headers: Record<string, string>;

const app = useTestApp();
beforeAll(async () => {
  headers = bearer((await createTestKey(operatorOf(app))).secret);
});
expectNoFailures(app);

const LONG = "\u{1f600}".repeat(400_000);

type Hostile = [name: string, field: string, value: JsonValue];

/** Sent once for each way of decoding. */
const LARGEST: Hostile[] = [
  ["8 MB of texts", "tools", Array(5).fill(LONG)],
  ["8 MB of texts as content", "messages", [{ role: "user", content: Array(5).fill(LONG) }]],
  ["8 MB of texts in an object", "logit_bias", { a: { b: Array(5).fill(LONG) } }],
];

/** Untyped fields with far more values than any service reads. */
const HOSTILE: Hostile[] = [
  ["90,000 values", "tools", Array(90_000).fill(true)],
  ["20,000 names", "logit_bias", Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`${i}`, 1]))],
  ["90,000 values as content", "messages", [{ role: "user", content: Array(90_000).fill([]) }]],
  ["25 lists in each other", "tools", JSON.parse(`${"[".repeat(25)}${"]".repeat(25)}`)],
];

const said = [{ role: "user", content: "x" }];

/** The same in the schema of a tool, which every protocol can send. */
const HOSTILE_SCHEMAS: [name: string, parameters: JsonValue][] = [
  ["90,000 values", { values: Array(90_000).fill(true) }],
  ["90,000 lists", { lists: Array(90_000).fill([]) }],
];

describe.each(wires.filter(({ name }) => /Connect/.test(name)))("over $name", (wire) => {
  test.each(HOSTILE_SCHEMAS)("%s are rejected with the name of the field", async (_name, parameters) => {
    const request = { model: "none", messages: said, tools: [{ name: "a", parameters }] };
    const body = wire.isJson
      ? Buffer.from(JSON.stringify(request))
      : toBinary(GenerateRequestSchema, fromJson(GenerateRequestSchema, request));
    const path = "/vx.v1.GenerateService/Generate";
    const refusal = refusalOf(await wire.send(app.url, path, body, { headers }));
    expect(refusal).toMatch(/INVALID_ARGUMENT[\s\S]*tools/);
  });
});

test.each([...LARGEST, ...HOSTILE])("over REST, %s are rejected with the name of the field", async (_name, field, value) => {
  const all = { "content-type": "application/json", ...headers };
  const body = JSON.stringify({ model: "none", messages: said, [field]: value });
  const answer = await sendHttp1(app.url, { path: "/v1/chat/completions", headers: all, body });
  const { error } = JSON.parse(answer.body.toString()) as { error: { code: string; param: string } };
  expect({ status: answer.status, code: error.code }).toEqual({ status: 400, code: "invalid_argument" });
  expect(error.param).toContain(field);
});
