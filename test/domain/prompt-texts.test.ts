import { expect, test } from "vitest";
import type { PromptMessage, Reasoning } from "../../src/domain/prompt.ts";
import { charactersIn, inputTokenBound } from "../../src/domain/prompt-texts.ts";
import { openaiBody } from "../../src/upstreams/openai/openai-body.ts";
import { promptOf } from "../support/samples.ts";

const reasoned = (reasoning: Reasoning): PromptMessage => ({
  role: "assistant",
  content: "",
  reasoning: [reasoning],
});

test("the text of reasoning counts as input beside its encrypted form, because upstreams can get it", () => {
  const text = "x ".repeat(1_000);
  const prompt = promptOf({
    messages: [reasoned({ text, signature: undefined, encrypted: "e" })],
    traits: { capabilities: [], extraFields: ["reasoning_content"] },
  });
  expect(JSON.stringify(openaiBody(prompt, "m", "max_tokens"))).toContain(text);
  expect(inputTokenBound(prompt)).toBeGreaterThan(text.length);
});

test("the size of a prompt includes signatures", () => {
  const prompt = promptOf({
    messages: [reasoned({ text: "", signature: "s".repeat(1_000), encrypted: undefined })],
  });
  expect(charactersIn(prompt)).toBeGreaterThanOrEqual(1_000);
});
