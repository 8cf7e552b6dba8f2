import { create, createRegistry, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as details from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { GenerateRequestSchema, GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { post as postJson } from "../support/any-json.ts";
import type { TestKey } from "../support/fixtures.ts";
import { limitedPayer } from "../support/limited-payer.ts";
import { HELD_MICROS, METERED_SURFACES, REQUEST, running, SANDBOX_REQUEST, useOwnMetered } from "../support/metered.ts";
import { callOf } from "../support/protocols.ts";

const TOP_UP_URL = "https://pay.example/top-up";

// An input token costs 1 micro, an output token 2.
const metered = useOwnMetered({ env: { VX_TOP_UP_URL: TOP_UP_URL } });
const call = callOf({
  get url() {
    return metered.app.url;
  },
});
const { generate } = GenerateService.method;
/** Its calls need more than the balance. */
let poor: TestKey;
/** A running call holds most of its balance. */
let waiting: TestKey;
let end: () => Promise<unknown>;

beforeAll(async () => {
  poor = await metered.payer(5n);
  waiting = await metered.payer(HELD_MICROS + 10n);
  ({ end } = await running(metered, () => call(generate, REQUEST, waiting.secret)));
});
afterAll(async () => {
  await end();
  await metered.settled();
});

const post = (path: string, key: TestKey, body: object) => postJson(metered.app, key, path, body);
const errorOf = async (key: TestKey, body: object) =>
  (await post("/v1/generate", key, { ...SANDBOX_REQUEST, ...body })).json.error;

const AMOUNTS = ["balance_micros", "held_micros", "available_micros", "required_micros", "shortage_micros"];

/** The amounts of an error, which must agree with each other and with the account. */
function checkAmounts(figures: Record<string, unknown>, balance: number, held: number): void {
  const required = Number(figures.required_micros);
  const available = balance - held;
  expect(AMOUNTS.map((name) => Number(figures[name]))).toEqual([balance, held, available, required, required - available]);
  expect(required).toBeGreaterThan(available);
  expect(figures.top_up_url).toBe(TOP_UP_URL);
}

test.each(METERED_SURFACES)(
  "POST %s %o: a 402 has the amounts, and is repeated only if running calls hold the balance",
  async (path, body) => {
    for (const [key, balance, held, retry] of [
      [poor, 5, 0, "false"],
      [waiting, 56, 46, "true"],
    ] as const) {
      const { status, header, json } = await post(path, key, body);
      expect({ status, code: json.error.code }).toEqual({ status: 402, code: "insufficient_balance" });
      for (const name of AMOUNTS) expect(json.error[name]).toBeTypeOf("number");
      checkAmounts(json.error, balance, held);
      const { details: found } = json.error;
      checkAmounts(Array.isArray(found) ? found[0].metadata : found, balance, held);
      expect(header("x-should-retry")).toBe(retry);
      expect(header("retry-after") ?? "").toMatch(retry === "true" ? /^[1-5]$/ : /^$/);
    }
    expect(await metered.rows(poor)).toEqual([]);
    expect(await metered.account(poor)).toEqual({ balance: 5, held: 0 });
  },
);

// test/protocols/error.test.ts has the refusal of the other key.
test("over RPCs, the details say when to repeat a call that only running calls prevent", async () => {
  const before = metered.upstream.calls.length;
  const outcome = await call(generate, REQUEST, waiting.secret);
  expect(outcome).toMatchObject({ text: expect.stringMatching(/running calls hold \$0\.000046 of it\. Try again/) });
  if (outcome.ok) return;
  checkAmounts(outcome.metadata, 56, 46);
  expect(outcome.details).toContain("RetryInfo");
  expect(metered.upstream.calls).toHaveLength(before);
  expect(await metered.rows(waiting)).toEqual([]);
  expect(await metered.account(waiting)).toEqual({ balance: 56, held: 46 });
});

describe("the text advises a lower max_tokens only if one fits:", () => {
  const HIGH = { max_tokens: 400 };
  const LONG = { ...HIGH, messages: [{ role: "user", content: "word ".repeat(100) }] };

  test.each(["cost", "tokens"])("of a limit of %s", async (metric) => {
    const key = await limitedPayer(metered, [{ metric, window: "day", amount: 60n }]);
    expect((await errorOf(key, HIGH)).message).toContain("Lower max_tokens, or raise the limit.");
    expect((await errorOf(key, LONG)).message).toMatch(/needs more than the limit\. Raise the limit\.$/);
  });

  test("of the balance", async () => {
    const key = await metered.payer(40n);
    expect((await errorOf(key, HIGH)).message).toContain("or lower max_tokens");
    expect((await errorOf(key, LONG)).message).not.toContain("max_tokens");
  });
});

/** The headers that are about the error. */
const SHOWN = ["content-type", "x-request-id", "request-id", "x-should-retry", "retry-after"];

async function restResponse(path: string): Promise<string> {
  const { header, json } = await post(path, poor, SANDBOX_REQUEST);
  const headers = SHOWN.flatMap((name) => (header(name) === null ? [] : [`${name}: ${header(name)}`]));
  return ["HTTP/1.1 402 Payment Required", ...headers, "", JSON.stringify(json, undefined, 2)].join("\n");
}

async function grpcResponse(): Promise<string> {
  const client = new grpc.Client(new URL(metered.app.url).host, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${poor.secret}`);
  const { max_tokens: maxTokens, ...request } = SANDBOX_REQUEST;
  const bytes = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { ...request, maxTokens }));
  const same = (value: Buffer) => value;
  const error = await new Promise<grpc.ServiceError | null>((resolve) => {
    client.makeUnaryRequest(`/${GenerateService.typeName}/Generate`, same, same, Buffer.from(bytes), metadata, resolve);
  });
  client.close();
  const [encoded] = error?.metadata.get("grpc-status-details-bin") ?? [];
  const registry = createRegistry(details.ErrorInfoSchema, details.PreconditionFailureSchema);
  return [
    `grpc-status: ${error?.code}`,
    `grpc-message: ${error?.details}`,
    "grpc-status-details-bin, as JSON:",
    "",
    toJsonString(StatusSchema, fromBinary(StatusSchema, encoded as Buffer), { registry, prettySpaces: 2 }),
  ].join("\n");
}

/** As code in Markdown, with the same id of a request each time. */
function indented(text: string): string {
  return text.replace(/req_[0-9a-f]{32}/g, `req_${"0123456789abcdef".repeat(2)}`).replace(/^(?=.)/gm, "    ");
}

test("docs/errors.md shows the whole 402 of each surface", async () => {
  const shown: string[] = [];
  for (const [surface, path] of [
    ["REST", "/v1/generate"],
    ["OpenAI", "/v1/chat/completions"],
    ["Anthropic", "/v1/messages"],
  ] as const)
    shown.push(`**${surface}**, \`POST ${path}\`:\n\n${indented(await restResponse(path))}\n`);
  shown.push(`**gRPC**, \`${GenerateService.typeName}/Generate\`:\n\n${indented(await grpcResponse())}\n`);
  await expect(shown.join("\n")).toMatchFileSnapshot("../../tools/responses-402.md");
});
