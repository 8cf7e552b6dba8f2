// Every API of the official SDKs that is not here gets an error that names it.
import { globSync, readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { UNSUPPORTED_APIS } from "../../src/server/rest/unsupported-apis.ts";
import { anthropic, refusalOf } from "../support/anthropic.ts";
import { useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { failureOf, openAi } from "../support/openai.ts";

const app = useTestApp();
const key = useTestKey(app);

/** The paths that the resources of an SDK call, with "x" for each of their variables. */
function pathsOf(sdk: string, prefix: string): string[] {
  const files = globSync(`node_modules/${sdk}/resources/**/*.mjs`);
  const calls = files.flatMap((file) => [
    ...readFileSync(file, "utf8").matchAll(/\.(?:get|post|put|patch|delete|getAPIList)\((?:path )?[`'](\/[^`'?]*)/g),
  ]);
  return [...new Set(calls.map(([, path]) => prefix + (path as string).replaceAll(/\$\{\w+\}/g, "x")))];
}

const ROUTES = "chat/completions completions embeddings messages messages/count_tokens models models/x responses"
  .split(" ")
  .map((path) => `/v1/${path}`);

function get(path: string, headers: Record<string, string> = { authorization: `Bearer ${key.secret}` }) {
  return fetch(app.url + path, { headers });
}

test.each([
  ["openai", pathsOf("openai", "/v1"), 180],
  ["@anthropic-ai/sdk", pathsOf("@anthropic-ai/sdk", ""), 160],
])("%s: every other path is a 400 with the name of the API", async (_sdk, paths, atLeast) => {
  const others = paths.filter((path) => !ROUTES.includes(path));
  expect(others.length).toBeGreaterThan(atLeast);
  const answers = await Promise.all(
    others.map(async (path) => {
      const answer = await get(path);
      const { error } = (await answer.json()) as { error: { message: string } };
      return { path, status: answer.status, isNamed: error.message.includes("does not support") };
    }),
  );
  expect(answers.filter(({ status, isNamed }) => status !== 400 || !isNamed)).toEqual([]);
});

test("no route hides a row of the table", async () => {
  for (const { path, name } of UNSUPPORTED_APIS) {
    const answer = await get(`${path}/x`);
    expect(answer.status).toBe(400);
    const message = expect.stringContaining(`${path}: this server does not support ${name}.`);
    expect(await answer.json()).toMatchObject({ error: { code: "invalid_argument", message } });
  }
});

test("a path that only starts like a path of the table is not found", async () => {
  for (const path of ["/v1/batchesx", "/v1/audiobooks/x", "/v1/message"]) expect((await get(path)).status).toBe(404);
});

test("below a path with a route, another method is a 405 that names the API as well", async () => {
  const answer = await get("/v1/chat/completions?limit=2");
  expect(answer.status).toBe(405);
  expect(answer.headers.get("allow")).toBe("POST, OPTIONS");
  expect(await answer.json()).toMatchObject({
    error: { message: expect.stringMatching(/Use POST, OPTIONS\. .*stored chat completions/) },
  });
});

test("a caller without a key gets a 401, as on every path", async () => {
  expect((await get("/v1/batches", {})).status).toBe(401);
});

describe("OpenAI's SDK shows the message", () => {
  const client = () => openAi(app, key);
  const sound = () => new File([Buffer.alloc(3_000_000)], "speech.wav");

  test.each([
    ["batches", () => client().batches.list(), "batches"],
    ["speech", () => client().audio.speech.create({ model: "m", voice: "alloy", input: "Hello" }), "audio"],
    ["a sent recording", () => client().audio.transcriptions.create({ model: "m", file: sound() }), "audio"],
    ["images", () => client().images.generate({ prompt: "a ledger" }), "image generation"],
    ["a stored response", () => client().responses.retrieve("resp_1"), "stored responses"],
    ["a cancelled response", () => client().responses.cancel("resp_1"), "stored responses"],
    ["tokens of a response", () => client().responses.inputTokens.count({ input: "Hello" }), "count_tokens"],
    ["assistants", () => client().beta.assistants.create({ model: "m" }), "assistants"],
  ])("for %s", async (_name, call, named) => {
    const error = await failureOf(call());
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toContain(named);
  });
});

describe("Anthropic's SDK shows the message", () => {
  const client = () => anthropic(app, key);

  test.each([
    ["message batches", () => client().messages.batches.list(), "message batches"],
    ["message batches of the beta", () => client().beta.messages.batches.retrieve("x"), "message batches"],
    ["files", () => client().beta.files.list(), "stored files"],
  ])("for %s", async (_name, call, named) => {
    const error = await refusalOf(call());
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
    expect(error).toMatchObject({ type: "invalid_request_error" });
    expect(error.message).toContain(named);
  });

  test("below /v1/messages in the shape of Anthropic's API", async () => {
    const answer = await get("/v1/messages/batches");
    expect(await answer.json()).toMatchObject({
      type: "error",
      error: { type: "invalid_request_error", details: { error_code: "invalid_argument" } },
    });
  });
});
