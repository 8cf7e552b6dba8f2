import { describe, expect, test } from "vitest";
import type { ApiCall } from "../../src/api/define-service.ts";
import { shutdownReason } from "../../src/app/drain.ts";
import { testFile } from "../rest/descriptors.ts";
import { mount } from "../rest/mount.ts";
import { sendHttp1 } from "../support/raw.ts";

const post = (path: string) => ({ pattern: { case: "post", value: path } as const, body: "*" });
const file = testFile(
  { Text: ["string text"] },
  {
    Reply: { input: "Text", output: "Text", http: post("/v1/reply") },
    Stream: { input: "Text", output: "Text", streams: true, http: post("/v1/stream") },
  },
);

describe("at the end of a drain", () => {
  async function cut(path: string, methods: (started: () => void) => Record<string, (request: never, call: ApiCall) => unknown>) {
    const shutdown = new AbortController();
    const started = Promise.withResolvers<void>();
    const server = await mount(file, { shutdownSignal: shutdown.signal, methods: methods(started.resolve) });
    const answer = sendHttp1(server.url, { path, headers: { "content-type": "application/json" }, body: "{}" });
    await started.promise;
    shutdown.abort(shutdownReason());
    const { status, body } = await answer;
    await server.stop();
    return { status, text: body.toString() };
  }

  test("a call that handles the abort ends with its own response", async () => {
    const { status, text } = await cut("/v1/reply", (started) => ({
      reply: (_request, call) =>
        new Promise((resolve) => {
          call.signal.addEventListener("abort", () => resolve({ text: "cut" }));
          started();
        }),
    }));
    expect({ status, text }).toEqual({ status: 200, text: '{"text":"cut"}' });
  });

  test("a call that throws the abort reason returns 503", async () => {
    const { status, text } = await cut("/v1/reply", (started) => ({
      reply: (_request, call) =>
        new Promise((_, reject) => {
          call.signal.addEventListener("abort", () => reject(call.signal.reason));
          started();
        }),
    }));
    expect(status).toBe(503);
    expect(JSON.parse(text).error).toMatchObject({ code: "unavailable", message: expect.stringMatching(/shutting down/) });
  });

  test("a call that ignores the abort returns 503", async () => {
    const { status, text } = await cut("/v1/reply", (started) => ({
      reply: () => {
        started();
        return new Promise(() => undefined);
      },
    }));
    expect(status).toBe(503);
    expect(JSON.parse(text).error.code).toBe("unavailable");
  });

  test.each([["before its first event"], ["after its first event"]])("a stream, %s, ends with the error", async (when) => {
    const isLate = when.startsWith("after");
    const { status, text } = await cut("/v1/stream", (started) => ({
      async *stream() {
        if (isLate) yield { text: "one" };
        started();
        await new Promise(() => undefined);
      },
    }));
    expect(status).toBe(isLate ? 200 : 503);
    expect(text).toMatch(isLate ? /^data: \{"text":"one"\}\n\ndata: \{"error":\{"code":"unavailable".*\n\n$/ : /unavailable/);
  });
});
