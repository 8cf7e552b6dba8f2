import { expect, test } from "vitest";
import { limitStreams } from "../../src/audit/run-audit.ts";

test("streams beyond the maximum are refused until one ends, is cancelled or fails", async () => {
  const open = limitStreams(2, async function* (end: "return" | "fail") {
    yield 1;
    if (end === "fail") throw new Error("failed");
  });
  const start = async (end: "return" | "fail" = "return") => {
    const stream = open(end);
    await stream.next();
    return stream;
  };
  const overloaded = { reason: "overloaded" };
  const first = await start();
  const second = await start("fail");
  await expect(start()).rejects.toMatchObject(overloaded);
  await expect(start()).rejects.toMatchObject(overloaded);
  await first.return();
  const third = await start();
  await expect(start()).rejects.toMatchObject(overloaded);
  await expect(second.next()).rejects.toThrow("failed");
  const fourth = await start();
  await expect(start()).rejects.toMatchObject(overloaded);
  expect((await third.next()).done).toBe(true);
  await start();
  await fourth.return();
});
