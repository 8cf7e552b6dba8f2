import { beforeEach, expect, test } from "vitest";
import { EarlyResets } from "../../src/server/http/connections.ts";

let nowMs: number;
let resets: EarlyResets;

beforeEach(() => {
  nowMs = 1_000;
  resets = new EarlyResets({ http2EarlyResetBurst: 10, http2EarlyResetsPerSecond: 100 }, () => nowMs);
});

function add(count: number, address = "192.0.2.1"): void {
  for (let i = 0; i < count; i++) resets.add(address);
}

test("an address waits for the resets above its allowance, and other addresses do not", () => {
  add(10);
  expect(resets.waitMs("192.0.2.1")).toBe(0);
  add(3);
  expect(resets.waitMs("192.0.2.1")).toBe(30);
  expect(resets.waitMs("192.0.2.2")).toBe(0);
});

test("the allowance grows with time, up to the burst", () => {
  add(13);
  nowMs += 30;
  expect(resets.waitMs("192.0.2.1")).toBe(0);
  nowMs += 60_000;
  add(11);
  expect(resets.waitMs("192.0.2.1")).toBe(10);
});

test("the wait has a limit", () => {
  add(100_000);
  expect(resets.waitMs("192.0.2.1")).toBe(10_000);
});

test("the number of addresses has a limit, and the one whose last reset is the oldest is removed", () => {
  add(20, "quiet");
  add(20, "busy");
  for (let i = 0; i < 9_998; i++) resets.add(`address ${i}`);
  resets.add("busy");
  expect(resets.waitMs("quiet")).toBeGreaterThan(0);
  resets.add("one more");
  expect(resets.waitMs("quiet")).toBe(0);
  expect(resets.waitMs("busy")).toBeGreaterThan(0);
});
