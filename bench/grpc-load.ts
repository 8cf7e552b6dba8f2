import { type ClientHttp2Session, connect, constants } from "node:http2";
import { type Load, runCallers } from "./load.ts";

type GrpcTarget = {
  readonly url: string;
  readonly callers: number;
  readonly connections: number;
  readonly seconds: number;
  readonly authorization?: string;
};

/** An arm that calls GetMe over gRPC with minimal client overhead. Fails on any status but OK. */
export function grpcArm({
  url,
  callers,
  connections,
  seconds,
  authorization,
}: GrpcTarget): () => Promise<Load> {
  const headers = {
    [constants.HTTP2_HEADER_METHOD]: "POST",
    [constants.HTTP2_HEADER_PATH]: "/vx.v1.MeService/GetMe",
    "content-type": "application/grpc+proto",
    te: "trailers",
    ...(authorization === undefined ? {} : { authorization }),
  };
  return async () => {
    const sessions = Array.from({ length: connections }, () => connect(url));
    try {
      return await runCallers(callers, seconds, (caller) =>
        callGetMe(sessions[caller % connections] as ClientHttp2Session, headers),
      );
    } finally {
      for (const session of sessions) session.close();
    }
  };
}

const EMPTY_MESSAGE = Buffer.alloc(5);

function callGetMe(session: ClientHttp2Session, headers: Record<string, string>): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers);
    let status: unknown;
    stream.on("trailers", (trailers) => {
      status = trailers["grpc-status"];
    });
    stream.on("error", reject);
    stream.on("close", () => (status === "0" ? resolve() : reject(new Error(`grpc-status ${status}`))));
    stream.resume();
    stream.end(EMPTY_MESSAGE);
  });
}
