import { expect, test } from "vitest";
import { updateDeadline } from "../../src/server/connect/universal-request.ts";

test.each([
  ["grpc-timeout", "1S", 400, "600m"],
  ["grpc-timeout", "1500u", 0.2, "2m"],
  ["grpc-timeout", "5m", 20, "0m"],
  ["grpc-timeout", "99999999H", 0, "3600000m"],
  ["connect-timeout-ms", "1000", 400, "600"],
  ["connect-timeout-ms", "5", 20, "0"],
  ["connect-timeout-ms", "9999999999", 0, "3600000"],
])("%s: %s, %d ms after the call arrived, is %s", (name, given, elapsedMs, remaining) => {
  const headers = new Headers({ [name]: given });
  updateDeadline(headers, elapsedMs);
  expect(headers.get(name)).toBe(remaining);
});

test("an invalid deadline is unchanged, so that Connect rejects it", () => {
  const headers = new Headers({ "grpc-timeout": "soon", "connect-timeout-ms": "-1" });
  updateDeadline(headers, 10);
  expect([...headers]).toEqual([
    ["connect-timeout-ms", "-1"],
    ["grpc-timeout", "soon"],
  ]);
});
