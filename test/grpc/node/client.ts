// Calls the server with grpc-js, and prints what it receives as JSON. The test says when the server stops and starts again.
import { createInterface } from "node:readline";
import { create, type DescMessage, fromBinary, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { EmbedRequestSchema, EmbedResponseSchema } from "../../../gen/vx/v1/embed_pb.js";
import {
  GenerateRequestSchema,
  GenerateResponseSchema,
  StreamGenerateRequestSchema,
  StreamGenerateResponseSchema,
} from "../../../gen/vx/v1/generate_pb.js";
import { GetMeRequestSchema, GetMeResponseSchema } from "../../../gen/vx/v1/me_pb.js";

const MODEL = "vx-sandbox-small";
const [protocol = "", address = "", key = ""] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

type Options = grpc.CallOptions & {
  readonly headers?: Record<string, string>;
  readonly key?: string;
  readonly isGzip?: boolean;
  readonly waitsForReady?: boolean;
};

const open = (options: grpc.ClientOptions = {}) =>
  new grpc.Client(address, grpc.credentials.createInsecure(), { "grpc.max_receive_message_length": 64 << 20, ...options });
const client = open();
const gzipClient = open({ "grpc.default_compression_algorithm": grpc.compressionAlgorithms.gzip });
/** Not for the drain: after a GOAWAY, Node cancels pings, and grpc-js then ends its running streams. */
const pingingClient = open({ "grpc.keepalive_time_ms": 1_000, "grpc.keepalive_permit_without_calls": 1 });

function metadataOf({ headers = {}, key: own = key, waitsForReady = false }: Options): grpc.Metadata {
  const metadata = new grpc.Metadata({ waitForReady: waitsForReady });
  for (const [name, value] of Object.entries({ authorization: `Bearer ${own}`, ...headers })) metadata.add(name, value);
  return metadata;
}

type Unary<Output> = {
  readonly error: grpc.ServiceError | null;
  readonly message: Output | undefined;
  readonly headers: Record<string, grpc.MetadataValue>;
};

function unary<I extends DescMessage, O extends DescMessage>(
  path: string,
  [input, output]: readonly [I, O],
  request: MessageInitShape<I>,
  options: Options = {},
): Promise<Unary<MessageShape<O>>> {
  return new Promise((resolve) => {
    let headers = {};
    const one = options.isGzip ? gzipClient : client;
    one
      .makeUnaryRequest(
        path,
        (message: MessageInitShape<I>) => Buffer.from(toBinary(input, create(input, message))),
        (bytes) => fromBinary(output, bytes),
        request,
        metadataOf(options),
        options,
        (error, message) => resolve({ error, message, headers }),
      )
      .on("metadata", (received: grpc.Metadata) => {
        headers = received.getMap();
      });
  });
}

const getMe = (options?: Options) => unary("/vx.v1.MeService/GetMe", [GetMeRequestSchema, GetMeResponseSchema], {}, options);
const generate = (request: MessageInitShape<typeof GenerateRequestSchema>, options?: Options) =>
  unary("/vx.v1.GenerateService/Generate", [GenerateRequestSchema, GenerateResponseSchema], request, options);

const codeOf = (error: grpc.ServiceError | null | undefined) => grpc.status[error?.code ?? 0];
const prompt = (content: string) => [{ role: "user", content }];

function detailsOf(error: grpc.ServiceError | null | undefined) {
  const [bytes] = error?.metadata.get("grpc-status-details-bin") ?? [];
  return bytes === undefined ? [] : fromBinary(StatusSchema, bytes as Buffer).details;
}

function reasonOf(error: grpc.ServiceError | null | undefined): string {
  const info = detailsOf(error).flatMap((detail) => anyUnpack(detail, ErrorInfoSchema) ?? [])[0];
  return info ? `${info.domain} ${info.reason}` : "";
}

function fieldsOf(error: grpc.ServiceError | null): string[] {
  const bad = detailsOf(error).flatMap((detail) => anyUnpack(detail, BadRequestSchema) ?? []);
  return bad.flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field));
}

type StreamOptions = Options & {
  readonly from?: grpc.Client;
  readonly onPiece?: (call: grpc.ClientReadableStream<unknown>, pieces: number) => unknown;
};

async function stream(text: string, { onPiece, from = client, ...options }: StreamOptions = {}) {
  const call = from.makeServerStreamRequest(
    "/vx.v1.GenerateService/StreamGenerate",
    (message: MessageInitShape<typeof StreamGenerateRequestSchema>) =>
      Buffer.from(toBinary(StreamGenerateRequestSchema, create(StreamGenerateRequestSchema, message))),
    (bytes) => fromBinary(StreamGenerateResponseSchema, bytes),
    { model: MODEL, messages: prompt(text) },
    metadataOf(options),
    options,
  );
  let [pieces, done] = [0, false];
  try {
    for await (const message of call) {
      if (message.event.case === "done") done = true;
      else {
        pieces++;
        await onPiece?.(call, pieces);
      }
    }
    return { code: "OK", pieces, done, reason: "" };
  } catch (error) {
    return { code: codeOf(error as grpc.ServiceError), pieces, done, reason: reasonOf(error as grpc.ServiceError) };
  }
}

async function generated(options: Options) {
  const { error, message } = await generate({ model: MODEL, messages: prompt("hello") }, options);
  return { code: codeOf(error), text: message?.message?.content, output: Number(message?.usage?.outputTokens) };
}

async function errors() {
  const { error: unknown } = await generate({ model: "no-such-model", messages: prompt("hello") });
  const { error: invalid } = await generate({ model: MODEL });
  const { error: noKey } = await getMe({ key: "vx_live_x" });
  return {
    unknown: [codeOf(unknown), reasonOf(unknown)],
    invalid: [codeOf(invalid), reasonOf(invalid), fieldsOf(invalid)],
    noKey: [codeOf(noKey), reasonOf(noKey)],
  };
}

async function replay() {
  const options = { headers: { "idempotency-key": `key of ${protocol}` } };
  const both = [];
  for (let i = 0; i < 2; i++) both.push(await generate({ model: MODEL, messages: prompt("hello") }, options));
  return {
    ids: new Set(both.map(({ message }) => message?.id)).size,
    replayed: both.map(({ headers }) => headers["idempotency-replayed"] ?? ""),
  };
}

/** Sends and receives a message of more than 5 MB. */
async function large() {
  const data = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(5 << 20)]);
  const parts = [{ text: "What is this?" }, { image: { data } }];
  const { error: sent } = await generate({ model: MODEL, messages: [{ role: "user", parts }] });
  const { error: received, message } = await unary("/vx.v1.EmbedService/Embed", [EmbedRequestSchema, EmbedResponseSchema], {
    model: "vx-sandbox-embed",
    input: Array.from({ length: 512 }, () => "a"),
    dimensions: 2_600,
  });
  const values = message?.embeddings.reduce((sum, embedding) => sum + embedding.values.length, 0);
  return { sent: codeOf(sent), received: codeOf(received), values };
}

/** More calls at once than the server allows on one connection. */
async function concurrent() {
  const calls = Array.from({ length: 300 }, async () => [codeOf((await getMe()).error), (await stream("[[tokens=12]]")).code]);
  const codes = (await Promise.all(calls)).flat();
  return { counts: Object.fromEntries([...new Set(codes)].map((code) => [code, codes.filter((one) => one === code).length])) };
}

async function drain() {
  let during: string | undefined;
  const { code, pieces, done } = await stream("[[tokens=120 delay_ms=100]]", {
    onPiece: async (_call, count) => {
      if (count > 1) return;
      console.log("streaming");
      await lines.next();
      during = codeOf((await getMe()).error);
    },
  });
  return { code, pieces: pieces + Number(done), during };
}

const keepAlive = stream("[[tokens=8 delay_ms=2000]]", { from: pingingClient });
const { error, message, headers } = await getMe({ headers: { "x-request-id": "my-unary" } });
const late = await stream("[[tokens=400 delay_ms=100]]", {
  deadline: Date.now() + 2_000,
  headers: { "x-request-id": "my-deadline" },
});
const results = {
  unary: { code: codeOf(error), plan: message?.plan, requestId: headers["x-request-id"] },
  generate: await generated({}),
  stream: await stream("[[tokens=40]] hello"),
  errors: await errors(),
  streamError: await stream("[[tokens=40 fail_after=8]]"),
  deadline: { code: late.code, somePieces: late.pieces > 0 },
  cancel: await stream("[[tokens=400 delay_ms=50]]", {
    headers: { "x-request-id": "my-cancellation" },
    onPiece: (call, pieces) => pieces === 2 && call.cancel(),
  }),
  replay: await replay(),
  large: await large(),
  gzip: await generated({ isGzip: true }),
  concurrent: await concurrent(),
  keepAlive: await keepAlive,
  drain: await drain(),
};
console.log("drained");
await lines.next();
const { error: reconnect } = await getMe({ waitsForReady: true, deadline: Date.now() + 30_000 });
console.log(JSON.stringify({ ...results, reconnect: { code: codeOf(reconnect) } }));
process.exit(0);
