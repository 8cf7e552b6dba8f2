import { describe, expect, test } from "vitest";
import type { RemoteKind } from "../../src/domain/model.ts";
import type { Prompt } from "../../src/domain/prompt.ts";
import { problemWith } from "../../src/upstreams/dialects.ts";
import { promptOf } from "../support/samples.ts";

const KINDS: readonly RemoteKind[] = ["openai", "openai-responses", "anthropic"];
const SETTINGS = { baseUrl: "http://127.0.0.1", apiKeyEnv: undefined, model: "m", timeoutMs: 1_000 };

/** The kinds of upstream that cannot get the prompt, with the field that is the reason. */
function refusals(prompt: Prompt): Record<string, string> {
  return Object.fromEntries(
    KINDS.flatMap((kind) => {
      const problem = problemWith({ kind, ...SETTINGS }, prompt, prompt.traits);
      return problem ? [[kind, problem.field]] : [];
    }),
  );
}

const image = { kind: "image", image: { kind: "url", url: "https://example.com/a.png" }, detail: undefined } as const;
const tools = [{ name: "f", description: undefined, parameters: undefined, strict: undefined }];
const reasoning = { text: "Hm.", signature: undefined, encrypted: undefined };
const onlyOpenai = (field: string) => ({ "openai-responses": field, anthropic: field });
const thinking = { reasoningEffort: "low" } as const;

describe("a prompt is refused by the upstreams that cannot get", () => {
  test.each<[string, Partial<Prompt>, Record<string, string>]>([
    ["a seed", { options: { seed: 0 } }, onlyOpenai("seed")],
    ["a presence penalty", { options: { presencePenalty: -1 } }, onlyOpenai("presence_penalty")],
    ["a frequency penalty", { options: { frequencyPenalty: 1 } }, onlyOpenai("frequency_penalty")],
    ["top_k", { options: { topK: 1 } }, { openai: "top_k", "openai-responses": "top_k" }],
    ["a suffix", { options: { suffix: "" } }, { openai: "suffix", ...onlyOpenai("suffix") }],
    [
      "nothing but reasoning",
      { messages: [{ role: "assistant", content: "", reasoning: [reasoning] }] },
      { openai: "messages", ...onlyOpenai("messages") },
    ],
    ["stop sequences", { stop: ["END"] }, { "openai-responses": "stop" }],
    ["a stop sequence of white space", { stop: ["x", "\n"] }, { "openai-responses": "stop", anthropic: "stop" }],
    ["JSON without a schema", { options: { responseFormat: { kind: "json" } } }, { anthropic: "response_format" }],
    ["a temperature with reasoning", { temperature: 0, options: thinking }, { anthropic: "temperature" }],
    ["a low top_p with reasoning", { options: { ...thinking, topP: 0.9 } }, { anthropic: "top_p" }],
    [
      "a tool with reasoning",
      { options: { ...thinking, tools, toolChoice: { kind: "required" } } },
      { anthropic: "tool_choice" },
    ],
    ["images of a tool", { messages: [{ role: "tool", toolCallId: "a", content: [image] }] }, { openai: "messages" }],
    ["nothing but a system message", { messages: [{ role: "system", content: "Be kind." }] }, { anthropic: "messages" }],
    ["nothing but empty texts", { messages: [{ role: "user", content: "" }] }, { anthropic: "messages" }],
  ])("%s", (_, prompt, expected) => {
    expect(refusals(promptOf(prompt))).toEqual(expected);
  });
});

describe("no upstream refuses", () => {
  test.each<[string, Partial<Prompt>]>([
    ["text", {}],
    ["penalties without effect", { options: { presencePenalty: 0, frequencyPenalty: 0 } }],
    ["an image", { messages: [{ role: "user", content: [image] }] }],
    ["reasoning with the default temperature", { temperature: 1, options: { ...thinking, topP: 0.95 } }],
    ["no reasoning with a temperature", { temperature: 0, options: { reasoningEffort: "none" } }],
    ["a schema", { options: { responseFormat: { kind: "json_schema", name: "n", schema: {}, strict: true } } }],
    ["top_k, if the model lists it", { options: { topK: 1 }, traits: { capabilities: [], extraFields: ["top_k"] } }],
  ])("%s", (_, prompt) => {
    expect(refusals(promptOf(prompt))).toEqual({});
  });
});

test("the problem in a message has its index", () => {
  const messages = [
    { role: "user", content: "x" },
    { role: "tool", toolCallId: "a", content: [image] },
  ] as const;
  const prompt = promptOf({ messages });
  expect(problemWith({ kind: "openai", ...SETTINGS }, prompt, prompt.traits)).toMatchObject({ message: 1 });
});
