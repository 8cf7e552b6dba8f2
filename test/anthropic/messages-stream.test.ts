import { expect, test } from "vitest";
import { messageEvents, messageOf } from "../../src/anthropic/reply.ts";
import type { Delta } from "../../src/domain/output.ts";
import type { Reply } from "../../src/generations/generation-request.ts";
import { NO_USAGE } from "../support/no-usage.ts";

const call = (index: number, id: string, text: string): Delta => ({
  kind: "tool_call",
  toolCall: { index, id, name: id === "" ? "" : `tool ${index}`, arguments: text },
});
const text = (content: string): Delta => ({ kind: "text", text: content });

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

/** The events between the first and the last two: "+" starts a block, "-" ends it. */
async function eventsOf(...deltas: Delta[]): Promise<string> {
  async function* pieces() {
    for (const delta of deltas) yield { kind: "delta" as const, id: "gen_1", model: "m", delta };
    yield { kind: "reply" as const, reply: REPLY };
  }
  const events: string[] = [];
  for await (const { type, index, contentBlock, delta } of messageEvents(pieces())) {
    if (type === "content_block_start") events.push(`+${index} ${contentBlock?.type} ${contentBlock?.id ?? ""}`.trim());
    else if (type === "content_block_stop") events.push(`-${index}`);
    else if (type === "content_block_delta") events.push(delta?.text ?? delta?.partialJson ?? delta?.thinking ?? "signature");
    else events.push(type ?? "");
  }
  expect([events.at(0), ...events.slice(-2)]).toEqual(["message_start", "message_delta", "message_stop"]);
  return events.slice(1, -2).join(", ");
}

const part = (words: string, signature?: string, encrypted?: string): Delta => ({
  kind: "reasoning",
  reasoning: { text: words, signature, encrypted },
});

test.each([
  [
    "pieces of calls that interleave become one block after the other",
    [call(0, "a", "1"), call(1, "b", "2"), call(0, "", "3"), call(1, "", "4")],
    "+0 tool_use a, 1, 3, -0, +1 tool_use b, 24, -1",
  ],
  [
    "a text between the pieces of a call follows the call",
    [text("x"), call(0, "a", "1"), text("y"), call(0, "", "2")],
    "+0 text, x, -0, +1 tool_use a, 1, 2, -1, +2 text, y, -2",
  ],
  [
    "a signature ends a block of reasoning, and encrypted reasoning is a block of its own",
    [part("x"), part("y"), part("", "s"), part("", undefined, "e"), text("z")],
    "+0 thinking, x, y, signature, -0, +1 redacted_thinking, -1, +2 text, z, -2",
  ],
  ["a reply without content has no blocks", [], ""],
])("%s", async (_, deltas, events) => {
  expect(await eventsOf(...deltas)).toBe(events);
});

test("reasoning with a text and an encrypted form has a block for each, in replies, streams and repeated streams", async () => {
  const expected = "+0 thinking, why, -0, +1 redacted_thinking, -1";
  expect(await eventsOf(part("why"), part("", undefined, "e"))).toBe(expected);
  expect(await eventsOf(part("why", undefined, "e"))).toBe(expected);
  const block = { text: "why", signature: undefined, encrypted: "e" };
  const message = messageOf({ ...REPLY, output: { text: "", reasoning: [block], toolCalls: [] } });
  expect(message.content).toEqual([
    { type: "thinking", thinking: "why", signature: "" },
    { type: "redacted_thinking", data: "e" },
  ]);
});
