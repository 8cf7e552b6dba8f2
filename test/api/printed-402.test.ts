import { create, createRegistry, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as details from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { GenerateRequestSchema, GenerateService } from "../../gen/vx/v1/generate_pb.js";
import type { TestKey } from "../support/fixtures.ts";
import { SANDBOX_MODEL, useOwnMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";

// An input token costs 1 micro, an output token 2.
const metered = useOwnMetered({ env: { VX_TOP_UP_URL: "https://pay.example/top-up" } });
let poor: TestKey;
let client: grpc.Client;

beforeAll(async () => {
  poor = await metered.payer(5n);
  client = new grpc.Client(metered.app.url.replace("http://", ""), grpc.credentials.createInsecure());
});
afterAll(() => client.close());

const messages = [{ role: "user", content: "hi" }];
const REST = [
  ["REST", "/v1/generate"],
  ["OpenAI", "/v1/chat/completions"],
  ["Anthropic", "/v1/messages"],
] as const;
/** The headers that are about the error. */
const SHOWN = ["content-type", "x-request-id", "request-id", "x-should-retry", "retry-after"];

async function restResponse(path: string): Promise<string> {
  const response = await fetch(`${metered.app.url}${path}`, {
    method: "POST",
    headers: { ...bearer(poor.secret), "content-type": "application/json" },
    body: JSON.stringify({ model: SANDBOX_MODEL, max_tokens: 10, messages }),
  });
  const headers = SHOWN.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [`${name}: ${value}`];
  });
  const body = JSON.stringify(await response.json(), undefined, 2);
  return [`HTTP/1.1 ${response.status} ${response.statusText}`, ...headers, "", body].join("\n");
}

function grpcResponse(): Promise<string> {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${poor.secret}`);
  const request = { model: SANDBOX_MODEL, maxTokens: 10, messages };
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      `/${GenerateService.typeName}/Generate`,
      (message: object) => Buffer.from(toBinary(GenerateRequestSchema, create(GenerateRequestSchema, message))),
      (bytes: Buffer) => bytes,
      request,
      metadata,
      (error) => resolve(grpcText(error)),
    );
  });
}

function grpcText(error: grpc.ServiceError | null): string {
  const [bytes] = error?.metadata.get("grpc-status-details-bin") ?? [];
  const status = fromBinary(StatusSchema, bytes as Buffer);
  const registry = createRegistry(details.ErrorInfoSchema, details.PreconditionFailureSchema);
  return [
    `grpc-status: ${error?.code}`,
    `grpc-message: ${error?.details}`,
    "grpc-status-details-bin, as JSON:",
    "",
    toJsonString(StatusSchema, status, { registry, prettySpaces: 2 }),
  ].join("\n");
}

test("docs/errors.md shows the whole 402 of each surface", async () => {
  const shown: string[] = [];
  for (const [surface, path] of REST) shown.push(`**${surface}**, \`POST ${path}\`:\n\n${indented(await restResponse(path))}\n`);
  shown.push(`**gRPC**, \`${GenerateService.typeName}/Generate\`:\n\n${indented(await grpcResponse())}\n`);
  await expect(shown.join("\n")).toMatchFileSnapshot("../../tools/responses-402.md");
});

/** As code in Markdown, with the same id of a request each time. */
function indented(text: string): string {
  return text.replace(/req_[0-9a-f]{32}/g, `req_${"0123456789abcdef".repeat(2)}`).replace(/^(?=.)/gm, "    ");
}
