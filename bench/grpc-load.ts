import { connect, constants } from "node:http2";

export type GrpcLoad = { call(): Promise<void>; close(): void };

/** Calls GetMe over gRPC with minimal client overhead. Fails on any status but OK. */
export function openGrpcLoad(url: string, connections: number, authorization: string | undefined): GrpcLoad {
  const sessions = Array.from({ length: connections }, () => connect(url));
  const emptyMessage = Buffer.alloc(5);
  let turn = 0;
  const headers = {
    [constants.HTTP2_HEADER_METHOD]: "POST",
    [constants.HTTP2_HEADER_PATH]: "/vx.v1.MeService/GetMe",
    "content-type": "application/grpc+proto",
    te: "trailers",
    ...(authorization === undefined ? {} : { authorization }),
  };
  return {
    call: () =>
      new Promise((resolve, reject) => {
        const session = sessions[turn++ % sessions.length];
        if (!session) throw new Error("no connection");
        const stream = session.request(headers);
        let status: unknown;
        stream.on("trailers", (trailers) => {
          status = trailers["grpc-status"];
        });
        stream.on("error", reject);
        stream.on("close", () => (status === "0" ? resolve() : reject(new Error(`grpc-status ${status}`))));
        stream.resume();
        stream.end(emptyMessage);
      }),
    close: () => {
      for (const session of sessions) session.close();
    },
  };
}
