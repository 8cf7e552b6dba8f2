import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { FramedResponse, type LastFrame } from "../rpc/framed-response.ts";

const OK: LastFrame = { flags: endStreamFlag, content: Buffer.from("{}") };

/** The response to a streaming call over Connect: the last envelope contains the error and the trailers. */
export class ConnectStreamResponse extends FramedResponse {
  protected lastFrame(error: ConnectError | undefined): LastFrame {
    if (!error && !this.trailers) return OK;
    const end = endStreamToJson(new Headers(this.trailers), error, undefined);
    return { flags: endStreamFlag, content: Buffer.from(JSON.stringify(end)) };
  }
}
