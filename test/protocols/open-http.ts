import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { onAbort } from "../support/on-abort.ts";

type Request = {
  readonly verb: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal | undefined;
};

/** A response whose body is still to be read. */
export type Opened = {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly chunks: AsyncIterable<Buffer>;
};

export function openHttp1(url: string, { verb, path, headers, body, signal }: Request): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const call = httpRequest(new URL(path, url), { method: verb, headers, agent: false });
    call.on("response", (response: IncomingMessage) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers as Record<string, string>, chunks: response });
    });
    call.on("error", reject);
    onAbort(signal, () => call.destroy(new Error("left")));
    call.end(body);
  });
}

export function openHttp2(url: string, { verb, path, headers, body, signal }: Request): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const session = connect(url);
    const stream = session.request({ ":method": verb, ":path": path, ...headers }, { endStream: !body });
    session.on("error", reject);
    stream.on("error", reject);
    stream.on("close", () => session.close());
    stream.on("response", ({ ":status": status, ...answered }) => {
      resolve({ status: Number(status), headers: answered as Record<string, string>, chunks: stream });
    });
    onAbort(signal, () => stream.destroy(new Error("left")));
    if (body) stream.end(body);
  });
}
