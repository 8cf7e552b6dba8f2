import { envelope } from "../../src/server/wire/rpc.ts";
import { bearer } from "../support/protocols.ts";
import type { RawRequest } from "../support/raw.ts";

const generation = (content: string) => ({
  model: "vx-sandbox-small",
  messages: [{ role: "user", content }],
});
const GENERATE = generation("[[tokens=3]]");
const FAILING = generation("[[fail_after=0]]");
const INTERRUPTED = generation("[[tokens=5 fail_after=2]]");

/** `full` allows one call per minute: its window is full. */
export type CaseKeys = { readonly paid: string; readonly unpaid: string; readonly full: string };

/** The key with which a request is sent; "" for none. */
type Key = keyof CaseKeys | "";
type Case = readonly [what: string, status: number, key: Key, request: (secret: string) => RawRequest];

const post = (path: string, type: string, body: string | Uint8Array) => (secret: string) => ({
  path,
  headers: { "content-type": type, ...(secret === "" ? {} : bearer(secret)) },
  body,
});
const rest = (path: string, message: object) => post(path, "application/json", JSON.stringify(message));
const framed = (type: string, rpc: string, message: object) => post(rpc, type, envelope(0, Buffer.from(JSON.stringify(message))));
const grpcWeb = (rpc: string, message: object) => framed("application/grpc-web+json", rpc, message);
const connectStream = (message: object) => framed("application/connect+json", STREAM, message);
const get =
  (path: string, method = "GET") =>
  (secret: string): RawRequest => ({ method, path, headers: secret === "" ? {} : bearer(secret) });

const ONCE = "/vx.v1.GenerateService/Generate";
const STREAM = "/vx.v1.GenerateService/StreamGenerate";
const GET_ME = "/vx.v1.MeService/GetMe";

/**
 * Requests with every kind of response: calls, streams and errors of each protocol, and pages. The status is 200 for gRPC-Web and Connect
 * streams, whose errors are in the trailers or the body.
 */
export const corsCases: readonly Case[] = [
  ["a REST call", 200, "paid", get("/v1/me")],
  ["a REST generation", 200, "paid", rest("/v1/generate", GENERATE)],
  ["a REST stream", 200, "paid", rest("/v1/generate", { ...GENERATE, stream: true })],
  ["an interrupted REST stream", 200, "paid", rest("/v1/generate", { ...INTERRUPTED, stream: true })],
  ["a repeated generation", 200, "paid", repeated],
  ["a chat completion", 200, "paid", rest("/v1/chat/completions", GENERATE)],
  ["OPTIONS that is no preflight", 204, "paid", get("/v1/me", "OPTIONS")],
  ["REST 400", 400, "paid", rest("/v1/generate", { model: 1 })],
  ["REST 401", 401, "", rest("/v1/generate", GENERATE)],
  ["REST 402", 402, "unpaid", rest("/v1/generate", GENERATE)],
  ["REST 404", 404, "paid", rest("/v1/nothing", {})],
  ["REST 405", 405, "paid", rest("/v1/me", {})],
  ["REST 413", 413, "paid", rest("/v1/generate", { text: "a".repeat(2_000_000) })],
  ["REST 415", 415, "paid", post("/v1/generate", "text/plain", "a")],
  ["REST 429", 429, "full", rest("/v1/generate", GENERATE)],
  ["REST 502", 502, "paid", rest("/v1/generate", FAILING)],
  ["a Connect call", 200, "paid", rest(ONCE, GENERATE)],
  ["a Connect GET", 200, "paid", get(`${GET_ME}?connect=v1&encoding=json&message=%7B%7D`)],
  ["a Connect stream", 200, "paid", connectStream(GENERATE)],
  ["an interrupted Connect stream", 200, "paid", connectStream(INTERRUPTED)],
  ["a refused Connect stream", 200, "full", connectStream(GENERATE)],
  ["Connect 401", 401, "", rest(ONCE, GENERATE)],
  ["Connect 404", 404, "paid", rest("/vx.v1.MeService/Nothing", {})],
  ["Connect 415", 415, "paid", post(GET_ME, "text/plain", "a")],
  ["Connect 429", 429, "full", rest(ONCE, GENERATE)],
  ["Connect 503", 503, "paid", rest(ONCE, FAILING)],
  ["a gRPC-Web call", 200, "paid", grpcWeb(ONCE, GENERATE)],
  ["a gRPC-Web stream", 200, "paid", grpcWeb(STREAM, GENERATE)],
  ["an interrupted gRPC-Web stream", 200, "paid", grpcWeb(STREAM, INTERRUPTED)],
  ["gRPC-Web UNAUTHENTICATED", 200, "", grpcWeb(ONCE, GENERATE)],
  ["gRPC-Web RESOURCE_EXHAUSTED", 200, "full", grpcWeb(ONCE, GENERATE)],
  ["gRPC-Web UNIMPLEMENTED", 200, "paid", grpcWeb("/vx.v1.MeService/Nothing", {})],
  ["gRPC-Web health", 200, "", grpcWeb("/grpc.health.v1.Health/Check", {})],
  ["an unknown path", 404, "", get("/nothing")],
  ["/readyz", 200, "", get("/readyz")],
  ["/openapi.json", 200, "", get("/openapi.json")],
];

function repeated(secret: string): RawRequest {
  const request = rest("/v1/generate", GENERATE)(secret);
  return { ...request, headers: { ...request.headers, "idempotency-key": "once" } };
}
