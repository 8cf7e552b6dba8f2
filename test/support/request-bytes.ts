import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type RawAnswer, sendHttp1, sendHttp2 } from "./raw.ts";

/** How a protocol transports the bytes of one request, for bodies that no client library creates. */
export type Wire = {
  readonly name: string;
  readonly isJson: boolean;
  send(url: string, path: string, message: Uint8Array, options?: SendOptions): Promise<RawAnswer>;
};

type SendOptions = {
  readonly headers?: Record<string, string>;
  /** Compresses the message and sets the header for the encoding. */
  readonly encoding?: "gzip" | "br";
};

function envelope(message: Uint8Array, isCompressed: boolean): Buffer {
  const head = Buffer.alloc(5);
  head[0] = isCompressed ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function wire(name: string, type: string, encodingHeader: string, isHttp2: boolean): Wire {
  const isEnveloped = !/^application\/(proto|json)$/.test(type);
  return {
    name,
    isJson: type.includes("json"),
    send: (url, path, message, { headers = {}, encoding } = {}) =>
      (isHttp2 ? sendHttp2 : sendHttp1)(url, {
        path,
        headers: {
          "content-type": type,
          ...(encoding === undefined ? {} : { [encodingHeader]: encoding }),
          ...(type === "application/grpc+proto" ? { te: "trailers" } : {}),
          ...headers,
        },
        body: isEnveloped ? envelope(message, encoding !== undefined) : message,
      }),
  };
}

/** The wire formats of unary calls, for every protocol. */
export const wires: readonly Wire[] = [
  wire("gRPC", "application/grpc+proto", "grpc-encoding", true),
  wire("gRPC-Web", "application/grpc-web+proto", "grpc-encoding", false),
  wire("Connect binary", "application/proto", "content-encoding", false),
  wire("Connect JSON", "application/json", "content-encoding", true),
];

/** The reason and the first field of an error response, in any protocol. */
export function refusalOf(answer: RawAnswer): string {
  const details = Object.entries(answer.headers).map(([name, value]) =>
    name === "grpc-status-details-bin" ? Buffer.from(value, "base64").toString("latin1") : value,
  );
  const trailer = answer.body.toString("latin1");
  const inBody = /grpc-status-details-bin: ?([\w+/=-]+)/.exec(trailer)?.[1];
  const json = answer.headers["content-type"] === "application/json" ? JSON.parse(trailer) : undefined;
  const values = (json?.details ?? []).map((one: { value: string }) => Buffer.from(one.value, "base64").toString("latin1"));
  return [...details, Buffer.from(inBody ?? "", "base64").toString("latin1"), ...values].join("\n");
}

export function binaryOf<Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): Uint8Array {
  return toBinary(desc, create(desc, init));
}
