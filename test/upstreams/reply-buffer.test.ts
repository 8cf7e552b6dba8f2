import { expect, test } from "vitest";
import { usageOf } from "../../src/domain/usage.ts";
import { ReplyBuffer } from "../../src/upstreams/http/reply-buffer.ts";

const USAGE = usageOf({ inputTokens: 1, outputTokens: 1 });

test("a truncated reply has no usage, even if the upstream reported some before", () => {
  const reply = new ReplyBuffer(1);
  reply.setUsage(USAGE);
  reply.append("x".repeat(10_000));
  expect(reply.state).toBe("cut");
  expect(reply.nextEvent()).toMatchObject({ kind: "text" });
  expect(reply.nextEvent()).toEqual({ kind: "done", finishReason: "length", usage: undefined });
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
