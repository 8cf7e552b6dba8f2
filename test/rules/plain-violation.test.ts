import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { CreateKeyRequestSchema, ListKeysRequestSchema } from "../../gen/vx/v1/key_pb.js";
import { ListEntriesRequestSchema } from "../../gen/vx/v1/ledger_pb.js";
import { DomainError } from "../../src/domain/errors.ts";
import { validateRequest } from "../../src/rules/validate.ts";

type Validated = Parameters<typeof validateRequest>;

function textOf(desc: Validated[0], fields: Record<string, unknown>): string {
  try {
    validateRequest(desc, create(desc, fields));
  } catch (error) {
    if (error instanceof DomainError) return error.message;
    throw error;
  }
  return "";
}

const messages = [{ role: "user", content: "hi" }];

test.each<[Validated[0], Record<string, unknown>, string]>([
  [GenerateRequestSchema, { model: "", messages }, "model: must not be empty"],
  [GenerateRequestSchema, { model: "a", messages: [] }, "messages: must not be empty"],
  [GenerateRequestSchema, { model: "a", messages, maxTokens: 0 }, "max_tokens: must be from 1 to 32000"],
  [GenerateRequestSchema, { model: "a", messages, temperature: 2.5 }, "temperature: must be from 0 to 2"],
  [GenerateRequestSchema, { model: "a", messages, stop: [..."abcde"] }, "stop: must have at most 4 items"],
  [
    GenerateRequestSchema,
    { model: "a", messages: [{ role: "robot", content: "hi" }] },
    "messages[0].role: must be one of: system, user, assistant, tool",
  ],
  [CreateKeyRequestSchema, { name: "a", scopes: ["read", "read"] }, "scopes: must not contain duplicates"],
  [ListEntriesRequestSchema, { kind: "gift" }, "kind: must be one of: generation, credit, topup, refund, adjustment, expiry"],
  [ListKeysRequestSchema, { pageSize: -1 }, "page_size: must be at least 0"],
])("%s: %o", (desc, fields, text) => {
  expect(textOf(desc, fields)).toBe(text);
});
