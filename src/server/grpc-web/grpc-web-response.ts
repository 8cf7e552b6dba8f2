import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { FramedResponse, type LastFrame } from "../rpc/framed-response.ts";

const OK: LastFrame = { flags: trailerFlag, content: Buffer.from("grpc-status: 0\r\n") };

/** The response to a call over gRPC-Web: the last envelope contains the trailers. */
export class GrpcWebResponse extends FramedResponse {
  protected lastFrame(error: ConnectError | undefined): LastFrame {
    if (!error && !this.trailers) return OK;
    const trailers = new Headers(this.trailers);
    setTrailerStatus(trailers, error);
    return { flags: trailerFlag, content: trailerSerialize(trailers) };
  }
}
