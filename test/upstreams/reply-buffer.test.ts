import { describe, expect, test } from "vitest";
import { usageOf } from "../../src/domain/price.ts";
import { firstTokens } from "../../src/tokens/count-tokens.ts";
import { ReplyBuffer } from "../../src/upstreams/http/reply-buffer.ts";

const USAGE = usageOf({ inputTokens: 1, outputTokens: 1 });

describe("a reply that is cut", () => {
  const cut = () => {
    const reply = new ReplyBuffer(1);
    reply.setUsage(USAGE);
    reply.append("x".repeat(10_000));
    expect(reply.state).toBe("cut");
    expect(reply.nextEvent()).toMatchObject({ kind: "text", text: "x".repeat(1_152) });
    expect(reply.nextEvent()).toBeUndefined();
    return reply;
  };

  test("has no usage if the upstream reports none after its finish reason", () => {
    const reply = cut();
    reply.fail(new Error("aborted"));
    expect(reply.nextEvent()).toEqual({ kind: "done", finishReason: "length", usage: undefined });
  });

  test("has the usage that the upstream reports at its end, with at most the output that its texts can have", () => {
    const reply = cut();
    reply.append("ignored");
    reply.setFinishReason("stop");
    reply.setUsage(usageOf({ inputTokens: 7, outputTokens: 31_000 }));
    reply.complete();
    const usage = { input: 7, output: 1_152 * 3 };
    expect(reply.nextEvent()).toMatchObject({ kind: "done", finishReason: "length", usage });
  });
});

describe("a reply of an upstream that has a higher limit", () => {
  const call = (text: string) => ({ index: 0, id: "call_1", name: "look", arguments: text });
  const received = (reply: ReplyBuffer) => {
    const events: unknown[] = [];
    for (let event = reply.nextEvent(); event; event = reply.nextEvent()) {
      events.push(event);
      if (event.kind === "done") break;
    }
    return events;
  };

  test("is read at its end, cut at max_tokens tokens", () => {
    const reply = new ReplyBuffer(3, firstTokens);
    reply.append("one two ");
    reply.append("three four");
    expect(received(reply)).toEqual([]);
    reply.setFinishReason("stop");
    reply.setUsage(usageOf({ inputTokens: 1, outputTokens: 4 }));
    reply.complete();
    expect(received(reply)).toMatchObject([{ text: "one two three" }, { finishReason: "length" }]);
  });

  const WHOLE = [{ text: "one two three four" }, { finishReason: "stop" }];

  test.each([
    ["is whole if the upstream reports at most max_tokens", 3, 3, WHOLE],
    ["is counted if no usage is reported: as long as max_tokens", 4, undefined, WHOLE],
    ["is counted if no usage is reported: longer", 2, undefined, [{ text: "one two" }, { finishReason: "length" }]],
  ])("%s", (_, maxTokens, outputTokens, events) => {
    const reply = new ReplyBuffer(maxTokens, firstTokens);
    reply.append("one two three four");
    reply.setFinishReason("stop");
    if (outputTokens !== undefined) reply.setUsage(usageOf({ inputTokens: 1, outputTokens }));
    reply.complete();
    expect(received(reply)).toMatchObject(events);
  });

  test("counts reasoning, names and arguments, and leaves out what follows the limit", () => {
    const reply = new ReplyBuffer(4, firstTokens);
    reply.appendReasoning({ text: "one two", signature: "s", encrypted: undefined });
    reply.appendToolCall(call('{"a":1}'));
    reply.append("three");
    reply.complete();
    expect(received(reply)).toMatchObject([
      { reasoning: { text: "one two", signature: "s" } },
      { toolCall: { name: "look", arguments: '{"' } },
      { finishReason: "length" },
    ]);
  });

  test("never ends inside a character", () => {
    const reply = new ReplyBuffer(2, firstTokens);
    // The first character has three tokens.
    reply.append("\u{1f9d1}\u{1f9d1}");
    reply.complete();
    expect(received(reply)).toMatchObject([{ finishReason: "length" }]);
  });
});

test("data after the end of the reply is ignored", () => {
  const reply = new ReplyBuffer(10);
  reply.setUsage(USAGE);
  reply.complete();
  reply.append("late");
  reply.setFinishReason("length");
  reply.setUsage(usageOf({ inputTokens: 2, outputTokens: 2 }));
  reply.fail(new Error("late"));
  expect(reply.nextEvent()).toEqual({ kind: "done", finishReason: "stop", usage: USAGE });
});

test("an abort replaces every state and returns the unread text", () => {
  const reason = new Error("aborted");
  const ends: ((reply: ReplyBuffer) => void)[] = [
    () => undefined,
    (reply) => reply.complete(),
    (reply) => reply.append("x".repeat(10_000)),
    (reply) => reply.fail(new Error("failed")),
  ];
  for (const end of ends) {
    const reply = new ReplyBuffer(1);
    reply.append("text");
    end(reply);
    expect(reply.abort(reason)).toMatch(/^text/);
    expect(() => reply.nextEvent()).toThrow(reason);
  }
});

test("unread pieces are joined with the one before them, and keep their order", () => {
  const reply = new ReplyBuffer(100);
  const call = (index: number, text: string) => reply.appendToolCall({ index, id: "", name: "", arguments: text });
  const think = (text: string, signature?: string) => reply.appendReasoning({ text, signature, encrypted: undefined });
  think("a");
  think("b", "s");
  think("c");
  reply.append("d");
  reply.append("e");
  call(0, "f");
  expect(reply.nextEvent()).toMatchObject({ reasoning: { text: "ab", signature: "s" } });
  call(0, "g");
  call(1, "h");
  reply.append("i");
  reply.complete();
  const rest = Array.from({ length: 6 }, () => reply.nextEvent());
  expect(rest).toMatchObject([
    { reasoning: { text: "c", signature: undefined } },
    { kind: "text", text: "de" },
    { toolCall: { index: 0, arguments: "fg" } },
    { toolCall: { index: 1, arguments: "h" } },
    { kind: "text", text: "i" },
    { kind: "done", finishReason: "tool_calls" },
  ]);
});

test("an abort returns the unread texts of all kinds, but no read ones", () => {
  const reply = new ReplyBuffer(100);
  reply.append("read");
  reply.nextEvent();
  reply.append("a");
  reply.appendReasoning({ text: "b", signature: "s", encrypted: undefined });
  reply.appendToolCall({ index: 0, id: "id", name: "f", arguments: "{}" });
  reply.append("c");
  expect(reply.abort(new Error("aborted"))).toBe("abf{}c");
});

test("a character that the upstream splits between two pieces is joined, in texts, reasoning and arguments", () => {
  const [high = "", low = ""] = "\u{1f600}".split("");
  const reply = new ReplyBuffer(100);
  const call = (text: string, id = "", name = "") => reply.appendToolCall({ index: 0, id, name, arguments: text });
  const think = (text: string) => reply.appendReasoning({ text, signature: undefined, encrypted: undefined });
  const taken = [
    () => think(`a${high}`),
    () => think(`${low}b`),
    () => reply.append(`c${high}`),
    () => reply.append(`${low}d`),
    () => call(`e${high}`, "call_1", "look"),
    () => call(`${low}f`),
  ].map((append) => {
    append();
    return reply.nextEvent();
  });
  expect(taken).toMatchObject([
    { reasoning: { text: "a" } },
    { reasoning: { text: "\u{1f600}b" } },
    { text: "c" },
    { text: "\u{1f600}d" },
    { toolCall: { id: "call_1", name: "look", arguments: "e" } },
    { toolCall: { id: "", arguments: "\u{1f600}f" } },
  ]);
});

test("half of a character without the other half is replaced, so that every protocol can send the reply", () => {
  const reply = new ReplyBuffer(100);
  reply.append("a\ud83db\ude00");
  reply.append("c\ud83d");
  reply.complete();
  expect(reply.nextEvent()).toEqual({ kind: "text", text: "a\ufffdb\ufffdc" });
  expect(reply.nextEvent()).toMatchObject({ kind: "done" });
});
