import { expect } from "vitest";
import type { RemoteSettings } from "../../src/domain/model.ts";
import type { Prompt } from "../../src/domain/prompt.ts";
import type { RequestBody } from "../../src/upstreams/http/request-body.ts";
import type { FakeCall, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { promptOf } from "../support/samples.ts";
import { NEVER, openRemote, read } from "./support.ts";

/** What is sent of a body that is encoded in parts. */
export function bytesOf(parts: RequestBody["parts"]): Buffer {
  return Buffer.concat(Array.from(parts, (part) => Buffer.from(part as string)));
}

export const CONVERSATION = promptOf({
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: "One." },
    { role: "user", content: "Two." },
    { role: "system", content: "Be kind." },
    { role: "user", content: "Three." },
    { role: "assistant", content: "Yes?" },
    { role: "user", content: "Four." },
  ],
  maxTokens: 7,
  temperature: 1.5,
  stop: ["END", "\n."],
});

/** A conversation with everything besides text. */
export const AGENT: Prompt = promptOf({
  messages: [
    {
      role: "user",
      content: [
        { kind: "text", text: "Look." },
        { kind: "image", image: { kind: "url", url: "https://example.com/a.png" }, detail: "low" },
        { kind: "image", image: { kind: "data", mediaType: "image/png", data: "AAAA" }, detail: undefined },
      ],
    },
    {
      role: "assistant",
      content: "",
      reasoning: [{ text: "Hm.", signature: "sig", encrypted: undefined }],
      toolCalls: [{ id: "c1", name: "look", arguments: '{"at":1}' }],
    },
    { role: "tool", toolCallId: "c1", content: "nothing" },
    { role: "assistant", content: "Nothing." },
    { role: "user", content: "Again." },
  ],
  options: {
    topP: 0.5,
    seed: 0,
    presencePenalty: 1,
    frequencyPenalty: -1,
    reasoningEffort: "low",
    tools: [
      { name: "look", description: "Looks.", parameters: { type: "object" }, strict: true },
      { name: "wait", description: undefined, parameters: undefined, strict: undefined },
    ],
    toolChoice: { kind: "tool", name: "look" },
    parallelToolCalls: false,
    responseFormat: { kind: "json_schema", name: "s", schema: { type: "object" }, strict: undefined },
  },
});

/** The request that the upstream receives. */
export async function sentTo(
  fake: FakeUpstream,
  prompt: Prompt,
  options: Partial<RemoteSettings> = {},
  env: Record<string, string> = {},
): Promise<FakeCall> {
  const upstream = openRemote(fake.settings(options), env);
  expect((await read(upstream.generate(prompt, NEVER))).failure).toBeUndefined();
  await upstream.close();
  return fake.calls.at(-1) as FakeCall;
}
