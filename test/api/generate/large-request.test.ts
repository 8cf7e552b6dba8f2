import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GenerateRequestSchema } from "../../../gen/vx/v1/generate_pb.js";
import { generationRequestOf } from "../../../src/api/generate/generate-request.ts";
import { checkRequest } from "../../../src/billing/check-request.ts";
import { MAX_IMAGE_BYTES } from "../../../src/domain/image.ts";
import { CAPABILITIES } from "../../../src/domain/model.ts";
import { inputTokenBound } from "../../../src/domain/prompt-texts.ts";
import { digestOfRequest } from "../../../src/rules/request-digest.ts";
import type { GenerateFields } from "../../support/generators.ts";
import { imageOfSize } from "../../support/images.ts";
import { longestTurnMs } from "../../support/longest-turn.ts";
import { modelOf } from "../../support/samples.ts";

const ABLE = modelOf({ capabilities: CAPABILITIES.filter((one) => one !== "embeddings") });
const said = { role: "user", content: "Hello" };
const properties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`property_${i}`, { type: "string" }]));

/** The largest requests that are accepted, below the limit of a body. */
const LARGE: [string, Omit<GenerateFields, "model">][] = [
  [
    "an image of 20 MiB",
    { messages: [{ role: "user", parts: [{ image: { data: imageOfSize(MAX_IMAGE_BYTES) } }] }] },
  ],
  [
    "100 images of 200 kB",
    { messages: [{ role: "user", parts: Array(100).fill({ image: { data: imageOfSize(200_000) } }) }] },
  ],
  [
    "a schema of 10,000 properties",
    {
      messages: [said],
      tools: [{ name: "a", parameters: { type: "object", properties: properties(10_000) } }],
    },
  ],
  [
    "256 tools",
    {
      messages: [said],
      tools: Array.from({ length: 256 }, (_, i) => ({
        name: `t${i}`,
        parameters: { properties: properties(80) },
      })),
    },
  ],
  [
    "30 MB of surrogate pairs",
    { messages: Array(20).fill({ role: "user", content: "\u{1f600}".repeat(390_000) }) },
  ],
  [
    "30 MB of arguments",
    {
      messages: Array.from({ length: 75 }, () => ({
        role: "assistant",
        toolCalls: [{ id: "a", name: "b", arguments: `{"a":[${"1,".repeat(199_000)}1]}` }],
      })),
    },
  ],
];

test.each(LARGE)(
  "%s: no part of the work before the hold takes more than 50 ms at once",
  async (_, fields) => {
    const message = create(GenerateRequestSchema, { model: "m", ...fields });
    const prepare = async () => {
      const request = await generationRequestOf(message);
      await checkRequest(ABLE, request);
      await digestOfRequest("method", GenerateRequestSchema, message);
      inputTokenBound(request);
    };
    expect(await longestTurnMs(prepare())).toBeLessThan(50);
  },
);
