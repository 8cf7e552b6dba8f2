import type { Protocol } from "../incoming-call.ts";

/** The form of a request, from its content type. */
export type RpcForm = {
  readonly protocol: Exclude<Protocol, "rest">;
  readonly isJson: boolean;
  /** Whether messages are framed: in gRPC, gRPC-Web and streams of Connect. */
  readonly isEnveloped: boolean;
  /** The request header that names the compression of messages. */
  readonly encodingHeader: "grpc-encoding" | "connect-content-encoding" | "content-encoding";
};
