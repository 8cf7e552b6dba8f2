import { type ClientHttp2Session, connect } from "node:http2";
import type { FuzzAnswer } from "./answers.ts";
import type { FuzzRequest } from "./requests.ts";

const PATIENCE_MS = 10_000;

/** Sequential sessions, each used until it ends. */
export class Session {
  readonly #url: string;
  #session: ClientHttp2Session | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /** Undefined if the client rejects the request, or the stream is reset. */
  send({ method, target, headers, body }: FuzzRequest): Promise<FuzzAnswer | undefined> {
    if (this.#session === undefined || this.#session.destroyed || this.#session.closed) {
      this.#session = connect(this.#url);
      this.#session.on("error", () => undefined);
    }
    const session = this.#session;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS);
      const finish = (answer?: FuzzAnswer) => {
        clearTimeout(timer);
        resolve(answer);
      };
      try {
        const all = { ":method": method, ":path": target, ...Object.fromEntries(headers) };
        const stream = session.request(all, { endStream: body === undefined });
        let status = 0;
        let received: Record<string, string> = {};
        const chunks: Buffer[] = [];
        stream.on("response", ({ ":status": code, ...rest }) => {
          status = Number(code);
          received = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)]));
        });
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("error", () => undefined);
        stream.on("close", () => finish(status === 0 ? undefined : { status, headers: received, body: Buffer.concat(chunks) }));
        if (body !== undefined) stream.end(body);
      } catch {
        finish();
      }
    });
  }

  close(): void {
    this.#session?.destroy();
  }
}
