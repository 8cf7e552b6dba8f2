import { expect, test } from "vitest";
import type { ApiCall } from "../../src/api/define-service.ts";
import type { ServiceCall } from "../../src/server/serve-call.ts";
import { sendHttp1 } from "../support/raw.ts";
import { testFile } from "./descriptors.ts";
import { mount } from "./mount.ts";

test("a header that is set twice has its last value, once", async () => {
  const file = testFile(
    { Ask: [], Answer: [] },
    {
      Get: {
        input: "Ask",
        output: "Answer",
        http: { pattern: { case: "get", value: "/v1/get" } } as never,
      },
    },
  );
  const Get = async (_request: never, call: ApiCall) => {
    const { exchange } = call as ServiceCall;
    exchange.setHeader("ratelimit", "first");
    exchange.setHeader("x-other", "ratelimit");
    exchange.setHeader("ratelimit", "second");
    return {};
  };
  const server = await mount(file, { methods: { get: Get } });
  const answer = await sendHttp1(server.url, { path: "/v1/get", method: "GET" });
  await server.stop();
  // Repeated headers would be joined.
  expect(answer.headers).toMatchObject({ ratelimit: "second", "x-other": "ratelimit" });
});
