import {
  create,
  createRegistry,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createContextValues, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import * as details from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";

/** The outcome of a call, in the same form for every protocol. */
export type Outcome<Output> =
  | { readonly ok: true; readonly message: Output; readonly headers: Record<string, string> }
  | {
      readonly ok: false;
      readonly code: string;
      /** The reason of the ErrorInfo detail, in lower case: the "code" in the table of errors. */
      readonly reason: string;
      readonly text: string;
      readonly headers: Record<string, string>;
      /** Names of the google.rpc details. */
      readonly details: string[];
      /** The fields that a BadRequest detail names. */
      readonly fields: string[];
      readonly metadata: Record<string, string>;
    };

export type Caller = {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    headers?: Record<string, string>,
  ): Promise<Outcome<MessageShape<O>>>;
  close(): void;
};

export type ProtocolCase = { readonly name: string; open(url: string): Caller };

/** Every protocol that the public port supports. */
export const protocols: readonly ProtocolCase[] = [
  { name: "gRPC (grpc-js)", open: openGrpcJs },
  { name: "gRPC", open: (url) => openConnect(createGrpcTransport({ baseUrl: url })) },
  { name: "gRPC-Web over HTTP/1.1", open: (url) => openConnect(createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1" })) },
  { name: "gRPC-Web over HTTP/2", open: (url) => openConnect(createGrpcWebTransport({ baseUrl: url, httpVersion: "2" })) },
  {
    name: "Connect JSON over HTTP/1.1",
    open: (url) => openConnect(createConnectTransport({ baseUrl: url, httpVersion: "1.1", useBinaryFormat: false })),
  },
  {
    name: "Connect binary over HTTP/2",
    open: (url) => openConnect(createConnectTransport({ baseUrl: url, httpVersion: "2", useBinaryFormat: true })),
  },
];

export type Call = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  secret: string,
) => Promise<Outcome<MessageShape<O>>>;

/** Calls a server with a key over one protocol, the quickest. test/protocols asserts that the others agree. */
export function callOf(server: { readonly url: string }): Call {
  let caller: Caller | undefined;
  return (method, request, secret) => {
    caller ??= openConnect(createConnectTransport({ baseUrl: server.url, httpVersion: "2" }));
    return caller.call(method, request, bearer(secret));
  };
}

/** The message of a call that must succeed. */
export function messageOf<Output>(outcome: Outcome<Output>): Output {
  if (!outcome.ok) throw new Error(outcome.text);
  return outcome.message;
}

export function bearer(secret: string): Record<string, string> {
  return { authorization: `Bearer ${secret}` };
}

const registry = createRegistry(
  details.ErrorInfoSchema,
  details.BadRequestSchema,
  details.RetryInfoSchema,
  details.QuotaFailureSchema,
  details.PreconditionFailureSchema,
  details.HelpSchema,
);

function openConnect(transport: Transport): Caller {
  return {
    async call(method, request, headers = {}) {
      try {
        const response = await transport.unary(method, undefined, undefined, headers, request, createContextValues());
        return { ok: true, message: response.message, headers: Object.fromEntries(response.header) };
      } catch (error) {
        const failure = ConnectError.from(error);
        const unpacked = [...registry].flatMap((desc) => (desc.kind === "message" ? failure.findDetails(desc) : []));
        return failureOf(snake(Code[failure.code]), failure.rawMessage, Object.fromEntries(failure.metadata), unpacked);
      }
    },
    close: () => undefined,
  };
}

function openGrpcJs(url: string): Caller {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  return {
    call(method, request, headers = {}) {
      const metadata = new grpc.Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.add(name, value);
      return new Promise((resolve) => {
        let answered: Record<string, string> = {};
        const call = client.makeUnaryRequest(
          `/${method.parent.typeName}/${method.name}`,
          (message) => Buffer.from(toBinary(method.input, create(method.input, message))),
          (bytes) => fromBinary(method.output, bytes),
          request,
          metadata,
          (error, message) => {
            if (message) resolve({ ok: true, message, headers: answered });
            else if (error) resolve(grpcFailure(error, answered));
          },
        );
        call.on("metadata", (received) => {
          answered = Object.fromEntries(Object.entries(received.getMap()).map(([name, value]) => [name, String(value)]));
        });
      });
    },
    close: () => client.close(),
  };
}

function grpcFailure<Output>(error: grpc.ServiceError, headers: Record<string, string>): Outcome<Output> {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  const status = bytes === undefined ? undefined : fromBinary(StatusSchema, bytes as Buffer);
  const unpacked = (status?.details ?? []).flatMap((any) => anyUnpack(any, registry) ?? []);
  const code = (grpc.status[error.code] ?? "").toLowerCase();
  return failureOf(code === "cancelled" ? "canceled" : code, error.details, headers, unpacked);
}

type Detail = { $typeName: string };

function failureOf<Output>(code: string, text: string, headers: Record<string, string>, unpacked: Detail[]): Outcome<Output> {
  const info = unpacked.find((detail) => detail.$typeName === "google.rpc.ErrorInfo") as details.ErrorInfo | undefined;
  const bad = unpacked.find((detail) => detail.$typeName === "google.rpc.BadRequest") as details.BadRequest | undefined;
  return {
    ok: false,
    code,
    reason: info?.reason.toLowerCase() ?? "",
    text,
    headers,
    details: unpacked.map((detail) => detail.$typeName.replace("google.rpc.", "")),
    fields: bad?.fieldViolations.map(({ field }) => field) ?? [],
    metadata: info?.metadata ?? {},
  };
}

function snake(name: string | undefined): string {
  return (name ?? "").replace(/(?<!^)([A-Z])/g, "_$1").toLowerCase();
}
