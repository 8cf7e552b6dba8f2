import { envelope } from "../../src/server/wire/rpc.ts";
import { bearer } from "../support/protocols.ts";
import type { RawRequest } from "../support/raw.ts";

const GENERATE = { model: "vx-sandbox-small", messages: [{ role: "user", content: "[[tokens=3]]" }] };
const FAILING = { model: "vx-sandbox-small", messages: [{ role: "user", content: "[[fail_after=0]]" }] };
const INTERRUPTED = {
  model: "vx-sandbox-small",
  messages: [{ role: "user", content: "[[tokens=5 fail_after=2]]" }],
};

/** `full` allows one call per minute. */
export type CaseKeys = { readonly paid: string; readonly unpaid: string; readonly full: string };

export type CorsCase = {
  readonly what: string;
  /** 200 for gRPC-Web and Connect streams, whose errors are in the trailers or the body. */
  readonly status: number;
  /** The call is refused because the window of its key is full. */
  readonly usesFullWindow?: true;
  readonly request: (keys: CaseKeys) => RawRequest;
};

const post = (path: string, type: string, body: string | Uint8Array, key: string): RawRequest => ({
  path,
  headers: { "content-type": type, ...(key === "" ? {} : bearer(key)) },
  body,
});
const rest = (path: string, message: object, key: string) =>
  post(path, "application/json", JSON.stringify(message), key);
const framedJson = (message: object) => envelope(0, Buffer.from(JSON.stringify(message)));
const grpcWeb = (rpc: string, message: object, key: string) =>
  post(`/vx.v1.${rpc}`, "application/grpc-web+json", framedJson(message), key);
const connectStream = (rpc: string, message: object, key: string) =>
  post(`/vx.v1.${rpc}`, "application/connect+json", framedJson(message), key);

/** Requests with every kind of response: calls, streams and errors of each protocol, and pages. */
export const corsCases: readonly CorsCase[] = [
  {
    what: "a REST call",
    status: 200,
    request: (keys) => ({ method: "GET", path: "/v1/me", headers: bearer(keys.paid) }),
  },
  { what: "a REST generation", status: 200, request: (keys) => rest("/v1/generate", GENERATE, keys.paid) },
  {
    what: "a REST stream",
    status: 200,
    request: (keys) => rest("/v1/generate", { ...GENERATE, stream: true }, keys.paid),
  },
  {
    what: "an interrupted REST stream",
    status: 200,
    request: (keys) => rest("/v1/generate", { ...INTERRUPTED, stream: true }, keys.paid),
  },
  {
    what: "a generation that is repeated with its idempotency key",
    status: 200,
    request: ({ paid }) => ({
      path: "/v1/generate",
      headers: { "content-type": "application/json", "idempotency-key": "once", ...bearer(paid) },
      body: JSON.stringify(GENERATE),
    }),
  },
  {
    what: "a chat completion",
    status: 200,
    request: (keys) => rest("/v1/chat/completions", GENERATE, keys.paid),
  },
  {
    what: "OPTIONS that is no preflight",
    status: 204,
    request: (keys) => ({ method: "OPTIONS", path: "/v1/me", headers: bearer(keys.paid) }),
  },
  { what: "REST 400", status: 400, request: (keys) => rest("/v1/generate", { model: 1 }, keys.paid) },
  { what: "REST 401", status: 401, request: () => rest("/v1/generate", GENERATE, "") },
  { what: "REST 402", status: 402, request: (keys) => rest("/v1/generate", GENERATE, keys.unpaid) },
  { what: "REST 404", status: 404, request: (keys) => rest("/v1/nothing", {}, keys.paid) },
  { what: "REST 405", status: 405, request: (keys) => rest("/v1/me", {}, keys.paid) },
  {
    what: "REST 413",
    status: 413,
    request: (keys) => rest("/v1/generate", { text: "a".repeat(2_000_000) }, keys.paid),
  },
  { what: "REST 415", status: 415, request: (keys) => post("/v1/generate", "text/plain", "a", keys.paid) },
  {
    what: "REST 429",
    usesFullWindow: true,
    status: 429,
    request: (keys) => rest("/v1/generate", GENERATE, keys.full),
  },
  { what: "REST 502", status: 502, request: (keys) => rest("/v1/generate", FAILING, keys.paid) },
  {
    what: "a Connect call",
    status: 200,
    request: (keys) => rest("/vx.v1.GenerateService/Generate", GENERATE, keys.paid),
  },
  {
    what: "a Connect GET",
    status: 200,
    request: (keys) => ({
      method: "GET",
      path: "/vx.v1.MeService/GetMe?connect=v1&encoding=json&message=%7B%7D",
      headers: bearer(keys.paid),
    }),
  },
  {
    what: "a Connect stream",
    status: 200,
    request: (keys) => connectStream("GenerateService/StreamGenerate", GENERATE, keys.paid),
  },
  {
    what: "an interrupted Connect stream",
    status: 200,
    request: (keys) => connectStream("GenerateService/StreamGenerate", INTERRUPTED, keys.paid),
  },
  {
    what: "a refused Connect stream",
    usesFullWindow: true,
    status: 200,
    request: (keys) => connectStream("GenerateService/StreamGenerate", GENERATE, keys.full),
  },
  {
    what: "Connect 401",
    status: 401,
    request: () => rest("/vx.v1.GenerateService/Generate", GENERATE, ""),
  },
  {
    what: "Connect 404",
    status: 404,
    request: (keys) => rest("/vx.v1.MeService/Nothing", {}, keys.paid),
  },
  {
    what: "Connect 415",
    status: 415,
    request: (keys) => post("/vx.v1.MeService/GetMe", "text/plain", "a", keys.paid),
  },
  {
    what: "Connect 429",
    usesFullWindow: true,
    status: 429,
    request: (keys) => rest("/vx.v1.GenerateService/Generate", GENERATE, keys.full),
  },
  {
    what: "Connect 503",
    status: 503,
    request: (keys) => rest("/vx.v1.GenerateService/Generate", FAILING, keys.paid),
  },
  {
    what: "a gRPC-Web call",
    status: 200,
    request: (keys) => grpcWeb("GenerateService/Generate", GENERATE, keys.paid),
  },
  {
    what: "a gRPC-Web stream",
    status: 200,
    request: (keys) => grpcWeb("GenerateService/StreamGenerate", GENERATE, keys.paid),
  },
  {
    what: "an interrupted gRPC-Web stream",
    status: 200,
    request: (keys) => grpcWeb("GenerateService/StreamGenerate", INTERRUPTED, keys.paid),
  },
  {
    what: "gRPC-Web UNAUTHENTICATED",
    status: 200,
    request: () => grpcWeb("GenerateService/Generate", GENERATE, ""),
  },
  {
    what: "gRPC-Web RESOURCE_EXHAUSTED",
    usesFullWindow: true,
    status: 200,
    request: (keys) => grpcWeb("GenerateService/Generate", GENERATE, keys.full),
  },
  {
    what: "gRPC-Web UNIMPLEMENTED",
    status: 200,
    request: (keys) => grpcWeb("MeService/Nothing", {}, keys.paid),
  },
  {
    what: "gRPC-Web health",
    status: 200,
    request: () => post("/grpc.health.v1.Health/Check", "application/grpc-web+json", framedJson({}), ""),
  },
  { what: "an unknown path", status: 404, request: () => ({ method: "GET", path: "/nothing" }) },
  { what: "/readyz", status: 200, request: () => ({ method: "GET", path: "/readyz" }) },
  { what: "/openapi.json", status: 200, request: () => ({ method: "GET", path: "/openapi.json" }) },
];
