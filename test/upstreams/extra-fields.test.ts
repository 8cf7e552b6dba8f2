import { describe, expect, test } from "vitest";
import type { Format } from "../../src/domain/prompt.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire, openaiResponsesWire, openaiWire } from "../support/fake-upstreams/wire.ts";
import { promptOf } from "../support/samples.ts";
import { sentTo } from "./requests-support.ts";

describe.each([
  { wire: openaiWire, format: "openai-chat" },
  { wire: openaiResponsesWire, format: "openai-responses" },
  { wire: anthropicWire, format: "anthropic-messages" },
] as const)("extra fields over $wire.kind", ({ wire, format }) => {
  // The fake is strict, so the extra fields are those of the format that vx itself never sets.
  const [name, value] = wire.kind === "anthropic" ? ["metadata", { user_id: "x" }] : ["user", "x"];

  const sentFields = async (from: Format, names: readonly string[]) => {
    const fake = await FakeUpstream.start({ wire });
    const extraFields = { format: from, fields: { [name as string]: value ?? null, other: 1 } };
    const { body } = await sentTo(fake, promptOf({ options: { extraFields }, traits: { capabilities: [], extraFields: names } }));
    await fake.stop();
    return [body[name as string], body.other];
  };

  test("are sent if the model lists them", async () => {
    expect(await sentFields(format, [name as string, "absent"])).toEqual([value, undefined]);
  });

  test("are not sent if the model does not list them, or the request has another format", async () => {
    expect(await sentFields(format, ["absent"])).toEqual([undefined, undefined]);
    expect(await sentFields("native", [name as string])).toEqual([undefined, undefined]);
  });
});
