import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { type AnyBody, anyBody, mutate } from "./bodies.ts";
import type { Random } from "./random.ts";

/** A request, valid or not, with its headers in order. */
export type FuzzRequest = {
  readonly http: 1 | 2;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | undefined;
  /** Whether bytes of the request itself are changed, so that it may be malformed. HTTP/1.1 only. */
  readonly broken: boolean;
};

const PATHS = [
  "/v1/me",
  "/v1/generate",
  "/v1/keys",
  "/v1/keys/key_01jzzzzzzzzzzzzzzzzzzzzzzz",
  "/v1/keys/x:revoke",
  "/v1/models",
  "/v1/models/vx-sandbox-small",
  "/v1/ledger",
  "/v1/chat/completions",
  "/v1",
];
const BODY_PATHS = ["/v1/generate", "/v1/chat/completions", "/v1/keys"];
const SEGMENTS = "v1 me generate keys models ledger x : :revoke %2F %00 %ff %zz % ** * {a} .. . __proto__ ä ~ ; @".split(" ");
const METHODS = "GET POST DELETE PUT PATCH HEAD OPTIONS TRACE PROPFIND get".split(" ");
const NAMES = "page_size pageSize page_token key_id name __proto__ constructor a.b page_size.x %ff".split(" ");
const VALUES = ["", "1", "0", "-1", "1001", "9e9", "abc", "%00", "%ff", "%", "%F0%9F%98%80", "a".repeat(600), "🎉"];
const TYPES = [
  "application/json",
  "application/json; charset=utf-8",
  "application/json;charset=latin1",
  "text/plain",
  "application/grpc",
  "application/proto",
  "",
  ";;;",
  "multipart/form-data; boundary=x",
];
const OTHERS: readonly (readonly [string, string])[] = [
  ["accept-encoding", "gzip"],
  ["accept-encoding", "br;q=0.1, *;q=0"],
  ["accept-encoding", ",;q=,"],
  ["x-request-id", "fuzz"],
  ["x-request-id", "a".repeat(300)],
  ["traceparent", "00-zz"],
  ["expect", "100-continue"],
  ["expect", "tea"],
  ["cookie", "a=b"],
  ["idempotency-key", '"x"'],
  ["idempotency-key", "é"],
  ["range", "bytes=0-1"],
  ["if-none-match", "*"],
  ["content-language", "x"],
  ["x-http-method-override", "DELETE"],
  ["connect-protocol-version", "9"],
  ["grpc-timeout", "1n"],
  ["upgrade", "h2c"],
  ["te", "trailers"],
];

export function anyRequest(random: Random, secret: string): FuzzRequest {
  const http = random.chance(0.6) ? 1 : 2;
  const hasBody = random.chance(0.75);
  const path = anyPath(random, hasBody);
  const body = hasBody ? anyBody(random, path) : undefined;
  const usual = body === undefined ? "GET" : "POST";
  const method = random.chance(0.8) ? usual : random.pick(METHODS);
  const encoded = encode(random, body);
  const headers: [string, string][] = [];
  for (const authorization of anyAuthorization(random, secret)) headers.push(["authorization", authorization]);
  if (body !== undefined || random.chance(0.2))
    headers.push(["content-type", random.chance(0.85) ? "application/json" : random.pick(TYPES)]);
  if (encoded.encoding !== undefined) headers.push(["content-encoding", encoded.encoding]);
  for (const [name, value] of random.list(4, () => random.pick(OTHERS))) {
    if (http === 2 && (name === "upgrade" || headers.some(([known]) => known === name))) continue;
    headers.push([name, value]);
  }
  return {
    http,
    method,
    target: withQuery(random, path, hasBody),
    headers,
    body: encoded.bytes,
    broken: http === 1 && random.chance(0.08),
  };
}

/** Usually the valid key, because other requests are rejected by the gate. */
function anyAuthorization(random: Random, secret: string): string[] {
  if (random.chance(0.9)) return [`Bearer ${secret}`];
  const wrong = ["", "Bearer", `bearer  ${secret} `, `Basic ${secret}`, `Bearer ${secret}x`, `Bearer ${secret} x`];
  return random.list(3, () => random.pick(wrong));
}

function anyPath(random: Random, hasBody: boolean): string {
  if (random.chance(0.25)) return `/${["v1", ...random.list(4, () => random.pick(SEGMENTS))].join("/")}`;
  return random.pick(hasBody && random.chance(0.8) ? BODY_PATHS : PATHS);
}

/** Rarely together with a body, because this is always a 400. */
function withQuery(random: Random, path: string, hasBody: boolean): string {
  if (random.chance(hasBody ? 0.9 : 0.6)) return path;
  const pairs = random.list(4, () => `${random.pick(NAMES)}${random.pick(["=", "", "=="])}${random.pick(VALUES)}`);
  return `${path}?${pairs.join(random.pick(["&", "&&", ";"]))}`;
}

function encode(random: Random, body: AnyBody | undefined): { bytes: Buffer | undefined; encoding?: string } {
  if (body === undefined) return { bytes: undefined };
  if (random.chance(0.85)) return { bytes: body };
  const encoding = random.pick(["gzip", "br", "deflate", "identity", "x", "gzip, br"]);
  const compressed = encoding === "gzip" ? gzipSync(body) : encoding === "br" ? brotliCompressSync(body) : deflateSync(body);
  if (random.chance(0.5)) return { bytes: compressed, encoding };
  return { bytes: random.chance(0.5) ? body : mutate(random, compressed), encoding };
}
