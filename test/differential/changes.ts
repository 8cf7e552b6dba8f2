import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { mutate } from "../fuzz/bodies.ts";
import type { Random } from "../fuzz/random.ts";
import { type Draft, envelopeOf, pathOf, setHeader } from "./draft.ts";
import { ALLOWED_ORIGIN, MAX_BODY_BYTES } from "./twins.ts";

/** A change of a request that clients or attackers make; the request need not stay valid. */
export type Change = (draft: Draft, random: Random) => void;

/** Changes of the messages and of their frames. */
const BODIES: Record<string, Change> = {
  cut: (draft, random) => draft.bodyChanges.push((body) => body.subarray(0, random.below(body.length + 1))),
  garbageAfter: (draft, random) =>
    draft.bodyChanges.push((body) => Buffer.concat([body, Buffer.alloc(1 + random.below(8), random.below(256))])),
  wrongLength: (draft, random) =>
    draft.bodyChanges.push((body) => {
      const changed = Buffer.from(body);
      const length = random.pick([0, 1, body.length, MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 2 ** 31, 2 ** 32 - 1]);
      if (changed.length >= 5) changed.writeUInt32BE(length, 1);
      return changed;
    }),
  twoMessages: (draft) => draft.frames.push(...draft.frames),
  noMessage: (draft) => {
    draft.frames = [];
  },
  emptyMessage: (draft) => {
    draft.frames = [{ flags: 0, payload: Buffer.alloc(0) }];
  },
  flags: (draft, random) => {
    for (const frame of draft.frames) frame.flags = random.pick([1, 2, 3, 4, 0x80, 0x81, 0xff]);
  },
  endOfStream: (draft, random) => {
    const payload = Buffer.from(random.pick(["{}", "", '{"metadata":{"a":["b"]}}', '{"error":{"code":"aborted"}}', "x"]));
    draft.bodyChanges.push((body) => Buffer.concat([body, envelopeOf(random.pick([2, 2, 3, 0x80]), payload)]));
  },
  changedBytes: (draft, random) => {
    for (const frame of draft.frames) frame.payload = mutate(random, frame.payload);
  },
  compressed: (draft, random) => compress(draft, random, true),
  compressedWrongly: (draft, random) => compress(draft, random, false),
  tooLarge: (draft, random) => {
    const payload = Buffer.alloc(MAX_BODY_BYTES + random.below(3), random.pick([0x20, 0x00, 0x61]));
    draft.frames = [{ flags: 0, payload }];
  },
  bomb: (draft, random) => {
    draft.frames = [{ flags: 0, payload: Buffer.alloc(4 * MAX_BODY_BYTES, 0x20) }];
    compress(draft, random, true);
  },
};

const ENCODERS: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gzipSync,
  br: brotliCompressSync,
  deflate: deflateSync,
  zstd: zstdCompressSync,
  identity: (bytes) => bytes,
  snappy: (bytes) => bytes,
  "": (bytes) => bytes,
  GZIP: gzipSync,
};

function compress(draft: Draft, random: Random, isConsistent: boolean): void {
  const { form } = draft;
  const encoding = random.pick(["gzip", "gzip", "br", ...Object.keys(ENCODERS)]);
  const encoder = isConsistent ? encoding : random.pick(Object.keys(ENCODERS));
  const connectName = form.isEnveloped ? "connect-content-encoding" : "content-encoding";
  setHeader(draft, form.protocol === "connect" ? connectName : "grpc-encoding", encoding);
  for (const frame of draft.frames) {
    frame.payload = (ENCODERS[encoder] as (bytes: Buffer) => Buffer)(frame.payload);
    frame.flags = isConsistent && encoding !== "identity" ? 1 : random.pick([0, 1]);
  }
}

const header =
  (name: string, ...values: string[]): Change =>
  (draft, random) =>
    setHeader(draft, name, random.pick(values));

const ACCEPTED_ENCODINGS = ["gzip", "br", "gzip,br", "br, gzip", "identity", "zstd,deflate", "*", "", ",", "GZIP", "gzip;q=0"];

export function acceptEncoding(draft: Draft, encodings: string): void {
  const { form } = draft;
  const connectName = form.isEnveloped ? "connect-accept-encoding" : "accept-encoding";
  setHeader(draft, form.protocol === "connect" ? connectName : "grpc-accept-encoding", encodings);
}

/** Changes of headers. */
const HEADERS: Record<string, Change> = {
  timeout: (draft, random) => {
    const isGrpc = draft.form.protocol !== "connect";
    // Either longer than the test or over at once, so that both servers decide the same.
    const valid = isGrpc ? ["1H", "99999999H", "100S", "60000m", "0n", "0S", "1n"] : ["3600000", "9999999999", "0"];
    const invalid = ["", "x", "-1", "1.5", "1s", "999999999S", " 1H", "1H ", "S", "99999999999", "1e3"];
    // In Connect, this is a millisecond.
    if (isGrpc) invalid.push("1");
    setHeader(
      draft,
      isGrpc ? "grpc-timeout" : "connect-timeout-ms",
      random.chance(0.5) ? random.pick(valid) : random.pick(invalid),
    );
  },
  contentType: (draft, random) => {
    const type = draft.form.contentType;
    // biome-ignore format: a few lines
    const changed = [
      `${type}; charset=utf-8`, `${type};charset=UTF-8`, `${type} ; charset=latin1`, `${type};`, `${type}; a="b;c"`, `${type}x`,
      type.toUpperCase(), type.replace(/\+.*/, ""), type.replace(/\+.*/, ";charset=utf-8"), type.replace(/\+.*/, "+thrift"),
      "application/grpc-web-text", "application/grpc-web-text+proto", "application/grpc-webx", "application/grpcx+proto",
      "application/connect+proto", "application/connect+json", "application/connect", "application/json", "application/proto",
      "application/x-protobuf", "text/plain", "",
    ];
    setHeader(draft, "content-type", random.pick(changed));
  },
  noContentType: (draft) => {
    draft.headers = draft.headers.filter(([name]) => name !== "content-type");
  },
  binaryHeader: (draft, random) => {
    const value = random.pick(["AAEC", "AAEC,AwQ", "%%%", "A", "", "=", "AA==", "not base64!"]);
    draft.headers.push([random.pick(["x-data-bin", "grpc-trace-bin", "grpc-status-details-bin"]), value]);
  },
  twice: (draft, random) => {
    const [name, value] = random.pick(draft.headers);
    if (name !== "host" && name !== "content-type") draft.headers.push([name, random.chance(0.5) ? value : "x"]);
  },
  acceptEncoding: (draft, random) => acceptEncoding(draft, random.pick(ACCEPTED_ENCODINGS)),
  protocolVersion: header("connect-protocol-version", "1", "2", "", "x"),
  noProtocolVersion: (draft) => {
    draft.headers = draft.headers.filter(([name]) => name !== "connect-protocol-version" && name !== "te");
  },
  origin: header("origin", ALLOWED_ORIGIN, "https://other.example", "null"),
  requestId: header("x-request-id", "my-request", "a".repeat(300), "", "with space", "é"),
  idempotencyKey: (draft, random) => {
    const value = random.pick(["one", "two", '"one"', "", "a".repeat(300), "é", `${random.below(50)}`]);
    setHeader(draft, "idempotency-key", value);
  },
  trace: header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-zz", ""),
  expect: header("expect", "100-continue", "tea"),
  userAgent: header("user-agent", "grpc-java-netty/1.60.0", "connect-go/1.18.0 (go1.24)", ""),
  cookie: header("cookie", "a=b; c=d"),
  contentEncoding: header("content-encoding", "gzip", "identity", "x"),
  stainless: header("x-stainless-timeout", "1", "600", "x"),
  close: (draft) => {
    if (draft.http === 1) setHeader(draft, "connection", "close");
  },
  noHost: (draft, random) => {
    if (draft.http === 1) setHeader(draft, "host", random.pick(["", "a b", "vx:80", "[::1]"]));
  },
};

/** Changes of the address, the verb and the transfer. */
const TRANSFERS: Record<string, Change> = {
  query: (draft, random) => {
    draft.target += (draft.target.includes("?") ? "&" : "?") + random.pick(["", "a=b", "connect=v1", "encoding=json&message={}"]);
  },
  path: (draft, random) => {
    const path = pathOf(draft.rpc);
    // biome-ignore format: a few lines
    draft.target = random.pick([
      `${path}/`, `/${path}`, path.toLowerCase(), path.replace(/\w$/, ""), `${path}x`, path.replace("/v", "/%76"),
      path.slice(0, path.lastIndexOf("/")), path.slice(0, path.lastIndexOf("/") + 1), "/", "/x", "*", `http://vx${path}`,
      `${path}#a`,
    ]);
  },
  verb: (draft, random) => {
    draft.verb = random.pick(["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"]);
  },
  preflight: (draft) => {
    draft.verb = "OPTIONS";
    draft.headers = [
      ["host", "vx"],
      ["origin", ALLOWED_ORIGIN],
      ["access-control-request-method", "POST"],
    ];
    draft.frames = [];
  },
  getQuery: (draft, random) => {
    draft.verb = "GET";
    draft.frames = [];
    const message = random.pick(["{}", "%7B%7D", "", "%", "e30", "{"]);
    // biome-ignore format: a few lines
    const values = [
      `message=${message}`, "encoding=json", "encoding=x", "encoding=proto", "base64=1", "base64=x", "compression=gzip",
      "compression=x", "connect=v1", "connect=v2",
    ];
    draft.target = `${pathOf(draft.rpc)}?${random.list(7, () => random.pick(values)).join("&")}`;
  },
  unknownLength: (draft) => {
    draft.framing = "unknown";
  },
  pieces: (draft, random) => {
    draft.pieceBytes = random.pick([1, 2, 5, 16, 1_000]);
  },
  trailers: (draft) => {
    draft.framing = "unknown";
    draft.trailers = [["x-trailer", "1"]];
  },
  followed: (draft) => {
    draft.isFollowed = draft.http === 1;
  },
  otherHttp: (draft) => {
    draft.http = draft.http === 1 ? 2 : 1;
    draft.headers = draft.headers.filter(([name]) => name !== "host");
    if (draft.http === 1) draft.headers.unshift(["host", "vx"]);
  },
};

export const CHANGES: Readonly<Record<string, Change>> = { ...BODIES, ...HEADERS, ...TRANSFERS };
