import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { GenerateRequestSchema } from "../../../gen/vx/v1/generate_pb.js";
import type { Random } from "../../fuzz/random.ts";
import { HOSTILE_SCHEMAS } from "../../support/hostile-schemas.ts";
import { imageOfSize } from "../../support/images.ts";

/** One request whose memory is large, and how it is sent. */
export type LargeRequest = {
  readonly name: string;
  readonly path: string;
  readonly isHttp2: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

const MEBIBYTE = 1_048_576;
/** The longest text of a message. */
const TEXT_UNITS = 399_000;
const MODELS = ["local", "remote"];
export const EMBEDDINGS_MODEL = "vectors";

/** The texts of a conversation with this many bytes of JSON, written as JSON strings. */
const TEXTS: Readonly<Record<string, (bytes: number) => string[]>> = {
  ASCII: (bytes) => texts(bytes, TEXT_UNITS, "lorem ipsum "),
  escapes: (bytes) => texts(bytes, TEXT_UNITS * 6, "\\u0061"),
  "one wide character in each text": (bytes) => texts(bytes, TEXT_UNITS, "lorem ipsum ", "€"),
  Chinese: (bytes) => texts(bytes, TEXT_UNITS * 3, "水"),
  "short texts": (bytes) => texts(Math.min(bytes, 60_000), 1, "a"),
};

function texts(bytes: number, each: number, text: string, first = ""): string[] {
  const long = `"${first}${text.repeat(Math.floor(each / Buffer.byteLength(text)) || 1)}"`;
  const count = Math.max(1, Math.floor(bytes / Buffer.byteLength(long)));
  return Array.from({ length: count }, () => long);
}

const image = (bytes: number) => imageOfSize(Math.floor((bytes * 3) / 4)).toString("base64");

type Surface = { readonly path: string; readonly body: (model: string, texts: string[]) => string };

const said = (texts: readonly string[]) => texts.map((text) => `{"role":"user","content":${text}}`).join();

const SURFACES: Readonly<Record<string, Surface>> = {
  generate: { path: "/v1/generate", body: (model, list) => `{"model":"${model}","messages":[${said(list)}]}` },
  quote: { path: "/v1/generate:quote", body: (model, list) => `{"model":"${model}","messages":[${said(list)}]}` },
  chat: { path: "/v1/chat/completions", body: (model, list) => `{"model":"${model}","messages":[${said(list)}]}` },
  responses: { path: "/v1/responses", body: (model, list) => `{"model":"${model}","store":false,"input":[${said(list)}]}` },
  messages: { path: "/v1/messages", body: (model, list) => `{"model":"${model}","max_tokens":9,"messages":[${said(list)}]}` },
  count_tokens: { path: "/v1/messages/count_tokens", body: (model, list) => `{"model":"${model}","messages":[${said(list)}]}` },
  completions: { path: "/v1/completions", body: (model, list) => `{"model":"${model}","prompt":${list[0]}}` },
  embeddings: { path: "/v1/embeddings", body: (_model, list) => `{"model":"${EMBEDDINGS_MODEL}","input":[${list.join()}]}` },
};

/** Draws a request. Most are valid; all have sizes up to the default limit of a body. */
export function drawRequest(random: Random): LargeRequest {
  const bytes = Math.floor(random.pick([0.2, 2, 6, 22, 27, 31]) * MEBIBYTE);
  const model = random.pick(MODELS);
  const headers = { "content-type": "application/json", ...(random.chance(0.4) && idempotencyKey(random)) };
  if (random.chance(0.2)) return binaryRequest(random, model, bytes, headers);
  if (random.chance(0.2)) {
    const text = image(Math.min(bytes, 27 * MEBIBYTE));
    const path = random.pick(["/v1/generate", "/v1/generate:quote"]);
    const body = `{"model":"${model}","messages":[{"role":"user","parts":[{"image":{"data":"${text}"}}]}]}`;
    return { name: `${path}, an image`, path, isHttp2: false, headers, body: Buffer.from(body) };
  }
  const [surfaceName, surface] = random.pick(Object.entries(SURFACES));
  const [textName, textsOf] = random.pick(Object.entries(TEXTS));
  let text = surface.body(model, textsOf(bytes - 2_000));
  if (random.chance(0.2)) text = text.slice(0, -1);
  const name = `${surfaceName}, ${textName}, ${Math.round(bytes / MEBIBYTE)} MiB`;
  const plain = { name, path: surface.path, isHttp2: false, headers, body: Buffer.from(text) };
  if (surfaceName !== "generate" || random.chance(0.3)) return encoded(random, plain);
  // A usual content type is served without Connect, any other by Connect.
  const contentType = random.pick(["application/json", "application/json;charset=utf-8"]);
  return {
    ...plain,
    name: `Connect, ${name}`,
    path: "/vx.v1.GenerateService/Generate",
    headers: { ...headers, "content-type": contentType },
  };
}

const json = (path: string, name: string, body: object): LargeRequest => ({
  name,
  path,
  isHttp2: false,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(body)),
});

/** Valid requests that take long. */
const WORK: readonly LargeRequest[] = [
  json("/v1/embed", "2,000 texts of 400 words", {
    model: EMBEDDINGS_MODEL,
    input: Array.from({ length: 2_000 }, () => "lorem ".repeat(400)),
  }),
  ...Object.entries(HOSTILE_SCHEMAS).map(([name, schema]) =>
    json("/v1/generate", `a schema with ${name}`, {
      model: "local",
      messages: [{ role: "user", content: "lorem ipsum" }],
      response_format: { type: "json_schema", name: "s", schema },
    }),
  ),
];

export function drawWork(random: Random): LargeRequest {
  return random.chance(0.3) ? (WORK[0] as LargeRequest) : random.pick(WORK);
}

function encoded(random: Random, plain: LargeRequest): LargeRequest {
  const encoding = random.pick(["identity", "identity", "gzip", "br"]);
  if (encoding === "identity") return plain;
  const params = { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_LGWIN]: 24 };
  const body = encoding === "br" ? brotliCompressSync(plain.body, { params }) : gzipSync(plain.body, { level: 1 });
  return { ...plain, name: `${plain.name}, ${encoding}`, headers: { ...plain.headers, "content-encoding": encoding }, body };
}

/** A message with an image and texts over gRPC, gRPC-Web or Connect. */
function binaryRequest(random: Random, model: string, bytes: number, headers: Record<string, string>): LargeRequest {
  const parts = [{ image: { data: imageOfSize(Math.min(bytes, 20 * MEBIBYTE)) } }];
  const content = "lorem ipsum ".repeat(33_000);
  const isImage = random.chance(0.5);
  const count = Math.max(1, Math.floor(bytes / content.length) - 1);
  const messages = isImage ? [{ role: "user", parts }] : Array.from({ length: count }, () => ({ role: "user", content }));
  const message = Buffer.from(toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { model, messages })));
  const protocol = random.pick(["grpc", "grpc-web", "proto"]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return {
    name: `${protocol}, ${isImage ? "an image" : "texts"}, ${Math.round(bytes / MEBIBYTE)} MiB`,
    path: `/vx.v1.GenerateService/${random.pick(["Generate", "QuoteGenerate"])}`,
    isHttp2: protocol === "grpc",
    headers: { ...headers, "content-type": `application/${protocol}`, te: "trailers" },
    body: protocol === "proto" ? message : Buffer.concat([head, message]),
  };
}

function idempotencyKey(random: Random): Record<string, string> {
  return { "idempotency-key": `large-${Math.floor(random.next() * 1e9)}` };
}
