import { expect, test } from "vitest";
import type { Delta } from "../../src/domain/output.ts";
import type { Reply } from "../../src/generations/generation-request.ts";
import { ResponseEvents } from "../../src/openai/responses/events.ts";
import { NO_USAGE } from "../support/no-usage.ts";

const REPLY: Reply = {
  id: "gen_1",
  model: "m",
  output: { text: "", reasoning: [], toolCalls: [] },
  finishReason: "tool_calls",
  loweredMaxTokens: undefined,
  usage: NO_USAGE,
  costMicros: 0n,
  balanceMicros: 0n,
};

function eventsOf(...deltas: Delta[]) {
  const response = { generationId: "gen_1", model: "m", settings: {}, isEncryptedIncluded: true };
  const events = new ResponseEvents(response);
  return [...events.start(), ...deltas.flatMap((delta) => [...events.append(delta)]), ...events.end(REPLY)];
}

const piece = (index: number, text: string, id = ""): Delta => ({
  kind: "tool_call",
  toolCall: { index, id, name: id && "f", arguments: text },
});
const text = (content: string): Delta => ({ kind: "text", text: content });
const reasoning = (content: string, signature?: string): Delta => ({
  kind: "reasoning",
  reasoning: { text: content, signature, encrypted: undefined },
});

test("calls whose pieces alternate are sent one after the other", () => {
  const events = eventsOf(piece(0, "{", "a"), piece(1, "[", "b"), piece(0, "}"), piece(2, "(", "c"), piece(1, "]"));
  const items = events.filter(({ type }) => type === "response.output_item.done");
  expect(items.map(({ outputIndex, item }) => [outputIndex, item?.id, item?.callId, item?.arguments])).toEqual([
    [0, "fc_1", "a", "{}"],
    [1, "fc_1_1", "b", "[]"],
    [2, "fc_1_2", "c", "("],
  ]);
  const indexes = events.flatMap(({ outputIndex }) => outputIndex ?? []);
  expect(indexes).toEqual(indexes.toSorted());
  expect(events.map(({ sequenceNumber }) => sequenceNumber)).toEqual([...events.keys()]);
});

test("the pieces of the first call are sent at once", () => {
  const response = { generationId: "gen_1", model: "m", settings: {}, isEncryptedIncluded: true };
  const events = new ResponseEvents(response);
  expect([...events.append(piece(0, "{", "a"))].map(({ type }) => type)).toEqual([
    "response.output_item.added",
    "response.function_call_arguments.delta",
  ]);
  expect([...events.append(piece(1, "{", "b"))]).toEqual([]);
  expect([...events.append(piece(0, "}"))]).toMatchObject([{ delta: "}" }]);
});

test("a signature ends a block of reasoning", () => {
  const events = eventsOf(reasoning("a"), reasoning("", "s"), reasoning("b", "t"), text("c"), reasoning("d"));
  const items = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
  expect(items.map((item) => [item?.id, item?.encryptedContent])).toEqual([
    ["rs_1", "vx-signature:s"],
    ["rs_1_1", "vx-signature:t"],
    ["msg_1", undefined],
    ["rs_1_2", undefined],
  ]);
});

test("text after a call is a message of its own", () => {
  const events = eventsOf(text("a"), piece(0, "{}", "x"), text("b"), text("c"));
  const items = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item?.id);
  expect(items).toEqual(["msg_1", "fc_1", "msg_1_1"]);
  expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { output: { length: 3 } } });
});
