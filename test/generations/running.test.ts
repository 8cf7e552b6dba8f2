import { expect, test } from "vitest";
import { RunningGenerations } from "../../src/generations/generation.ts";

const reason = (take: () => void) => {
  try {
    take();
    return "taken";
  } catch (error) {
    return (error as { reason?: string }).reason;
  }
};

test("one account cannot use the capacity of all others", () => {
  const running = new RunningGenerations(80);
  for (let i = 0; i < 70; i++) running.reserve("greedy");
  expect(reason(() => running.reserve("greedy"))).toBe("overloaded");
  expect(reason(() => running.reserve("modest"))).toBe("taken");
  expect(running.count).toBe(71);
  running.release("greedy");
  running.release("greedy");
  expect(reason(() => running.reserve("greedy"))).toBe("taken");
});

test("a process accepts generations up to its maximum, and reports when all have ended", async () => {
  const running = new RunningGenerations(8);
  for (let i = 0; i < 7; i++) running.reserve("one");
  expect(reason(() => running.reserve("one"))).toBe("overloaded");
  let isIdle = false;
  const idle = running.whenIdle().then(() => {
    isIdle = true;
  });
  for (let i = 0; i < 6; i++) running.release("one");
  await Promise.resolve();
  expect(isIdle).toBe(false);
  running.release("one");
  await idle;
});
