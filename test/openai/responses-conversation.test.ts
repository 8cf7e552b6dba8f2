import { expect, test } from "vitest";
import { conversationOf } from "../../src/openai/responses/input.ts";
import { encryptedContentOf, reasoningOf } from "../../src/openai/responses/items.ts";

const reasoning = (text: string) => ({ type: "reasoning", summary: [{ type: "summary_text", text }] });
const block = (text: string) => ({ text, signature: undefined, encrypted: undefined });
const said = (content: string) => ({ role: "assistant", content });
const call = (call_id: string) => ({ type: "function_call", call_id, name: "f", arguments: "{}" });
const called = (id: string) => ({ id, name: "f", arguments: "{}" });
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "x" });
const result = (toolCallId: string) => ({ role: "tool", content: "x", toolCallId });

test("the items of one reply become one message, also between its calls", () => {
  const input = [reasoning("a"), said("b"), call("1"), reasoning("c"), call("2"), output("1"), output("2")];
  const { messages, fields } = conversationOf("Be short.", input);
  expect(messages).toEqual([
    { role: "system", content: "Be short." },
    { role: "assistant", content: "b", toolCalls: [called("1"), called("2")], reasoning: [block("a"), block("c")] },
    result("1"),
    result("2"),
  ]);
  expect(fields).toEqual(["instructions", "input[0]", "input[5]", "input[6]"]);
});

test("a text after a text, and a call after a result, belong to the next reply", () => {
  const input = [said("a"), said("b"), call("1"), output("1"), call("2"), output("2"), said("c")];
  expect(conversationOf(undefined, input).messages).toEqual([
    { role: "assistant", content: "a" },
    { role: "assistant", content: "b", toolCalls: [called("1")] },
    result("1"),
    { role: "assistant", content: "", toolCalls: [called("2")] },
    result("2"),
    { role: "assistant", content: "c" },
  ]);
});

test("an empty text as the arguments of a call means none", () => {
  const input = [{ ...call("1"), arguments: "" }, output("1")];
  expect(conversationOf(undefined, input).messages[0]?.toolCalls).toEqual([called("1")]);
});

test.each([
  { text: "a", signature: "s", encrypted: undefined },
  { text: "", signature: "s", encrypted: undefined },
  { text: "a", signature: undefined, encrypted: "e" },
])("the opaque form of reasoning survives a round trip: %j", (original) => {
  const summary = original.text === "" ? [] : [{ type: "summary_text", text: original.text }];
  const item = { type: "reasoning", summary, encrypted_content: encryptedContentOf(original) ?? null };
  expect(reasoningOf(item, "input[0]")).toEqual(original);
});
