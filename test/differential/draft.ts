import { createRegistry, type DescMethod, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import type { WireRequest } from "./exchange.ts";

/** A protocol with its codec, over one version of HTTP. */
export type Form = {
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly http: 1 | 2;
  readonly isJson: boolean;
  /** Whether messages are framed: always, except in unary calls of Connect. */
  readonly isEnveloped: boolean;
  readonly contentType: string;
  /** A call of Connect whose message is in the query. */
  readonly isGet: boolean;
};

type Frame = { flags: number; payload: Buffer };

/** A request before it is written. The changes of a test are applied to it. */
export type Draft = {
  readonly rpc: DescMethod;
  readonly form: Form;
  http: 1 | 2;
  verb: string;
  target: string;
  headers: [string, string][];
  frames: Frame[];
  /** Changes of the body as a whole. */
  readonly bodyChanges: ((body: Buffer) => Buffer)[];
  pieceBytes: number;
  framing: WireRequest["framing"];
  trailers: [string, string][];
  isFollowed: boolean;
};

const CODECS = [
  { isJson: false, name: "proto" },
  { isJson: true, name: "json" },
] as const;

/** Every form in which a method can be called. */
export function formsOf(method: DescMethod): Form[] {
  const isUnary = method.methodKind === "unary";
  const forms: Form[] = [];
  for (const { isJson, name } of CODECS) {
    const framed = { isJson, isEnveloped: true, isGet: false };
    forms.push({ ...framed, protocol: "grpc", http: 2, contentType: `application/grpc+${name}` });
    for (const http of [1, 2] as const) {
      forms.push({ ...framed, protocol: "grpc-web", http, contentType: `application/grpc-web+${name}` });
      const connect = { protocol: "connect", http, isJson } as const;
      if (!isUnary) forms.push({ ...connect, ...framed, contentType: `application/connect+${name}` });
      else forms.push({ ...connect, isEnveloped: false, isGet: false, contentType: `application/${name}` });
      // NO_SIDE_EFFECTS
      if (method.idempotency === 1)
        forms.push({ ...connect, isEnveloped: false, isGet: true, contentType: `application/${name}` });
    }
  }
  return forms;
}

export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

const registry = createRegistry();

export function draftOf(method: DescMethod, form: Form, message: Message, secret: string): Draft {
  const text = () => Buffer.from(toJsonString(method.input, message, { registry }));
  const payload = form.isJson ? text() : Buffer.from(toBinary(method.input, message));
  const headers: [string, string][] = [];
  if (form.http === 1) headers.push(["host", "vx"]);
  headers.push(["authorization", `Bearer ${secret}`]);
  if (!form.isGet) headers.push(["content-type", form.contentType]);
  if (form.protocol === "grpc") headers.push(["te", "trailers"]);
  if (form.protocol === "connect" && !form.isGet) headers.push(["connect-protocol-version", "1"]);
  const query = `?connect=v1&encoding=${form.isJson ? "json" : "proto"}&base64=1&message=${payload.toString("base64url")}`;
  return {
    rpc: method,
    form,
    http: form.http,
    verb: form.isGet ? "GET" : "POST",
    target: pathOf(method) + (form.isGet ? query : ""),
    headers,
    frames: form.isGet ? [] : [{ flags: 0, payload }],
    bodyChanges: [],
    pieceBytes: 1 << 20,
    framing: "length",
    trailers: [],
    isFollowed: false,
  };
}

export function requestOf(draft: Draft): WireRequest {
  const { form, frames, bodyChanges, headers, trailers } = draft;
  const bodies = frames.map(({ flags, payload }) => (form.isEnveloped ? envelopeOf(flags, payload) : payload));
  const body = bodyChanges.reduce<Buffer>((bytes, change) => change(bytes), Buffer.concat(bodies));
  return { ...draft, method: draft.verb, headers, trailers, body };
}

export function envelopeOf(flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

export function setHeader(draft: Draft, name: string, value: string): void {
  draft.headers = [...draft.headers.filter(([key]) => key !== name), [name, value]];
}
