import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CreateChatCompletionRequestSchema } from "../../gen/vx/openai/v1/chat_pb.js";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import type { JsonValue } from "../../src/domain/json.ts";
import { digestOfRequest } from "../../src/rules/request-digest.ts";
import { valueOfJson } from "../../src/rules/untyped-values.ts";
import { runs } from "../support/runs.ts";

type GenerateFields = MessageInitShape<typeof GenerateRequestSchema>;

const digestOf = (fields: GenerateFields, rpc = "generate") =>
  digestOfRequest(rpc, GenerateRequestSchema, create(GenerateRequestSchema, fields), "");
const digestOfTools = (json: JsonValue) =>
  digestOfRequest(
    "chat",
    CreateChatCompletionRequestSchema,
    create(CreateChatCompletionRequestSchema, { tools: valueOfJson(json) }),
    "",
  );
const text = (content: string) => ({ role: "user", content });
const image = (data: Uint8Array<ArrayBuffer>) => ({ role: "user", parts: [{ image: { data } }] });

test.each<[string, GenerateFields, GenerateFields]>([
  ["a text and another", { messages: [text("a")] }, { messages: [text("b")] }],
  ["one message and two", { messages: [text("a")] }, { messages: [text("a"), text("")] }],
  ["a text in two lists", { stop: ["a", "b"] }, { stop: ["ab"] }],
  ["a text in another field", { model: "a" }, { user: "a" }],
  ["a number that is not set", {}, { temperature: 0 }],
  ["bytes", { messages: [image(Uint8Array.of(1))] }, { messages: [image(Uint8Array.of(2))] }],
  ["members of a schema", { tools: [{ name: "a", parameters: { a: 1 } }] }, { tools: [{ name: "a", parameters: { a: "1" } }] }],
])("requests that differ have different digests: %s", async (_, one, other) => {
  expect(await digestOf(one)).toBe(await digestOf(one));
  expect(await digestOf(one)).not.toBe(await digestOf(other));
});

test("the same request to another method has another digest", async () => {
  expect(await digestOf({}, "generate")).not.toBe(await digestOf({}, "embed"));
});

/** JSON with sorted names. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? 0 : value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const);
  return { members: entries.sort(([a], [b]) => (a < b ? -1 : 1)) };
}

test("untyped values have the same digest if and only if they are the same JSON", async () => {
  const json = fc.jsonValue({ maxDepth: 2 });
  await fc.assert(
    fc.asyncProperty(json, json, async (one, other) => {
      const areEqual = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
      const digest = await digestOfTools(one as JsonValue);
      expect(digest === (await digestOfTools(other as JsonValue))).toBe(areEqual);
      expect(await digestOfTools(structuredClone(one) as JsonValue)).toBe(digest);
    }),
    { numRuns: runs(300) },
  );
});
