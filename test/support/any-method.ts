import { create, type DescMethod, type DescMethodServerStreaming, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { isRestOnly } from "../../src/rules/policy.ts";
import { developerServices } from "../../src/server/services.ts";
import { bearer, type Caller, type ProtocolCase, protocols } from "./protocols.ts";

/** Every method of the developer API, from the descriptors. */
export const developerMethods: readonly DescMethod[] = developerServices.flatMap(({ methods }) => methods);

/** The ones that also exist over gRPC, gRPC-Web and Connect. */
export const rpcMethods: readonly DescMethod[] = developerMethods.filter(({ parent }) => !isRestOnly(parent));

export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

export type Ending = {
  readonly code: string;
  readonly reason: string;
  readonly text: string;
  readonly headers: Record<string, string>;
};

type AnyCaller = {
  /** Calls the method, with an empty request by default, and returns how the call ended. */
  end(method: DescMethod, headers?: Record<string, string>, request?: Message): Promise<Ending>;
  close(): void;
};

/** The protocol of tests that need only one. */
export const QUICKEST = protocols.find(({ name }) => name === "Connect binary over HTTP/2") as ProtocolCase;

/** Calls unary and streaming methods alike over one protocol, with a key and an empty request by default. */
export function callAny(server: { readonly url: string }) {
  let caller: AnyCaller | undefined;
  return (method: DescMethod, secret: string, request?: Message) => {
    caller ??= openAny(QUICKEST, server.url);
    return caller.end(method, bearer(secret), request);
  };
}

/** Calls unary and streaming methods alike. */
export function openAny(protocol: ProtocolCase, url: string): AnyCaller {
  const caller = protocol.open(url);
  const own = STREAMS[protocol.name]?.(url);
  return {
    end: (method, headers = {}, request = create(method.input)) => {
      // A unary client would wait for the end of a stream without end.
      const transport = own ?? (isEndless(method) ? createGrpcTransport({ baseUrl: url }) : undefined);
      return method.methodKind === "server_streaming" && transport
        ? endStream(transport, method as DescMethodServerStreaming, headers, request)
        : endUnary(caller, method as DescMethodUnary, headers, request);
    },
    close: () => caller.close(),
  };
}

/** Whether a stream ends only with its caller, its key or the server. */
export function isEndless({ parent, name }: DescMethod): boolean {
  return parent.typeName === "vx.v1.EventService" && name === "WatchEvents";
}

/** Protocols in which streams and unary calls differ from the first byte on. */
const STREAMS: Record<string, (baseUrl: string) => Transport> = {
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
  "gRPC-Web over HTTP/1.1": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "gRPC-Web over HTTP/2": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  "Connect JSON over HTTP/1.1": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  "Connect binary over HTTP/2": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }),
};

async function endUnary(
  caller: Caller,
  method: DescMethodUnary,
  headers: Record<string, string>,
  request: Message,
): Promise<Ending> {
  const outcome = await caller.call(method, request, headers);
  return outcome.ok
    ? { code: "ok", reason: "", text: "", headers: outcome.headers }
    : { code: outcome.code, reason: outcome.reason, text: JSON.stringify(outcome), headers: outcome.headers };
}

async function endStream(
  transport: Transport,
  method: DescMethodServerStreaming,
  headers: Record<string, string>,
  request: Message,
): Promise<Ending> {
  let answered = new Headers();
  try {
    const input = (async function* () {
      yield request;
    })();
    const response = await transport.stream(method, undefined, undefined, headers, input);
    answered = response.header;
    for await (const _ of response.message) if (isEndless(method)) break;
    return { code: "ok", reason: "", text: "", headers: Object.fromEntries(answered) };
  } catch (error) {
    const failure = ConnectError.from(error);
    const [info] = failure.findDetails(ErrorInfoSchema);
    return {
      code: Code[failure.code].replace(/(?<!^)([A-Z])/g, "_$1").toLowerCase(),
      reason: info?.reason.toLowerCase() ?? "",
      text: JSON.stringify([failure.rawMessage, info]),
      headers: { ...Object.fromEntries(failure.metadata), ...Object.fromEntries(answered) },
    };
  }
}
