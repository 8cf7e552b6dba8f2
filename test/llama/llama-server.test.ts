import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { operatorOf, type TestKey } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey, openAi } from "../support/openai.ts";
import { problemOf } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** A real model server: that of llama-cpp-python, with a model of random weights. */
const python = process.env.LLAMA_PYTHON ?? "python3";
const missing = problemOf(python, "-c", "import llama_cpp.server, gguf");
if (missing !== undefined) {
  console.error(`SKIPPED: no real model server was tested. LLAMA_PYTHON must be a Python with the packages
"llama-cpp-python[server]" and "gguf". ${missing}`);
}

const TOOL: OpenAI.ChatCompletionTool = {
  type: "function",
  function: { name: "switch", parameters: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] } },
};
const FORCED = { tools: [TOOL], tool_choice: { type: "function" as const, function: { name: "switch" } } };
const ARGUMENTS = /^\s*\{\s*"on"\s*:\s*(true|false)\s*\}\s*$/;

describe.skipIf(missing !== undefined)("the server of llama-cpp-python", () => {
  const folder = createTemporaryFolder("llama");
  let server: ChildProcess;
  let models: ReturnType<typeof createModelsFile>;
  let app: TestApp;
  let key: TestKey;
  let client: OpenAI;

  beforeAll(async () => {
    const file = join(folder.path, "tiny.gguf");
    expect(problemOf(python, "test/llama/make_tiny_model.py", file)).toBeUndefined();
    server = startServer(["--model", file, "--chat_format", "chatml-function-calling", "--n_ctx", "2048"]);
    const url = await urlOf(server);
    models = createModelsFile(
      JSON.stringify({
        models: [
          {
            id: "tiny",
            context_window: 2_048,
            max_output_tokens: 256,
            capabilities: ["tools", "json_schema"],
            input_micros_per_million_tokens: 1_000_000,
            output_micros_per_million_tokens: 1_000_000,
            upstream: { kind: "openai", base_url: `${url}/v1`, model: "tiny" },
          },
        ],
      }),
    );
    app = await startTestApp({ env: { VX_MODELS: models.path } });
    key = await createPaidKey(operatorOf(app));
    client = openAi(app, key);
  });
  afterAll(async () => {
    await app.stop();
    server.kill();
    models.remove();
    folder.remove();
  });

  const ask = { model: "tiny", max_tokens: 20, messages: [{ role: "user" as const, content: "Hello" }] };

  test("completes text", async () => {
    const { choices, usage } = await client.chat.completions.create({ ...ask, temperature: 0, seed: 1, stop: ["#"] });
    expect(choices[0]?.message.content).toMatch(/^[a-z]+$/);
    expect(choices[0]?.finish_reason).toBe("length");
    expect(usage?.completion_tokens).toBeGreaterThan(0);
  });

  test("streams text", async () => {
    let text = "";
    for await (const { choices } of await client.chat.completions.create({ ...ask, stream: true })) {
      text += choices[0]?.delta.content ?? "";
    }
    expect(text).toMatch(/^[a-z]+$/);
  });

  test("calls a tool, and continues with its result", async () => {
    const { choices } = await client.chat.completions.create({ ...ask, ...FORCED, max_tokens: 200 });
    const message = choices[0]?.message;
    const call = message?.tool_calls?.[0];
    expect(choices[0]?.finish_reason).toBe("tool_calls");
    expect(call).toMatchObject({ type: "function", function: { name: "switch", arguments: expect.stringMatching(ARGUMENTS) } });
    const result = { role: "tool" as const, tool_call_id: call?.id ?? "", content: "done" };
    const messages = [...ask.messages, message as OpenAI.ChatCompletionMessage, result];
    const next = await client.chat.completions.create({ ...ask, messages });
    expect(next.choices[0]?.message.content).toMatch(/^[a-z]+$/);
  });

  test("streams the arguments of a tool call", async () => {
    let name = "";
    let text = "";
    const stream = await client.chat.completions.create({ ...ask, ...FORCED, max_tokens: 200, stream: true });
    for await (const { choices } of stream) {
      const part = choices[0]?.delta.tool_calls?.[0]?.function;
      name += part?.name ?? "";
      text += part?.arguments ?? "";
    }
    expect(name).toBe("switch");
    expect(text).toMatch(ARGUMENTS);
  });

  test("calls a tool for a client of Anthropic's API", async () => {
    const anthropic = new Anthropic({ baseURL: app.url, authToken: key.secret, apiKey: null, maxRetries: 0 });
    const { function: tool } = TOOL as OpenAI.ChatCompletionFunctionTool;
    const { content, stop_reason } = await anthropic.messages.create({
      ...ask,
      max_tokens: 200,
      tools: [{ name: tool.name, input_schema: tool.parameters as Anthropic.Tool.InputSchema }],
      tool_choice: { type: "tool", name: tool.name },
    });
    expect(content).toMatchObject([{ type: "tool_use", name: "switch", input: { on: expect.any(Boolean) } }]);
    expect(stop_reason).toBe("tool_use");
  });

  test("replies with JSON", async () => {
    const response_format = { type: "json_object" as const };
    const { choices } = await client.chat.completions.create({ ...ask, max_tokens: 200, response_format });
    // The random model writes endless texts, so the end may be missing.
    expect(choices[0]?.message.content).toMatch(/^\s*\{/);
  });

  test("a field that it refuses is an upstream error and is not charged", async () => {
    const before = await balanceOf(app, key);
    const response_format = { type: "json_schema" as const, json_schema: { name: "any", schema: {} } };
    await expect(client.chat.completions.create({ ...ask, response_format })).rejects.toMatchObject({ status: 502 });
    expect(await balanceOf(app, key)).toBe(before);
  });
});

async function balanceOf({ url }: TestApp, { secret }: TestKey): Promise<unknown> {
  const response = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${secret}` } });
  return ((await response.json()) as { balance_micros: unknown }).balance_micros;
}

function startServer(options: readonly string[]): ChildProcess {
  const address = ["--host", "127.0.0.1", "--port", "0"];
  return spawn(python, ["-m", "llama_cpp.server", ...address, ...options], { stdio: ["ignore", "ignore", "pipe"] });
}

/** The address of the server, once it accepts calls. */
async function urlOf(server: ChildProcess): Promise<string> {
  return await new Promise((resolve, reject) => {
    let log = "";
    server.stderr?.on("data", (data: Buffer) => {
      log += data.toString();
      const [, url] = /Uvicorn running on (\S+)/.exec(log) ?? [];
      if (url !== undefined) resolve(url);
    });
    server.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${log.slice(-500)}`)));
  });
}
