import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";

/**
 * For requests that no client library sends: repeated headers, keys in the address, bodies that never arrive.
 */
export type RawRequest = {
  readonly method?: string;
  readonly path: string;
  /** A list is sent as repeated headers. */
  readonly headers?: Record<string, string | string[]>;
  /** The head is sent at once, also if the body comes later. */
  readonly body?: string | Uint8Array | Promise<string | Uint8Array>;
  /** The headers announce a body that is never sent. */
  readonly withoutBody?: boolean;
};

export type RawAnswer = {
  readonly status: number;
  /** Includes trailers. */
  readonly headers: Record<string, string>;
  readonly body: Buffer;
};

/** The reason of an error is in its body, or in a detail of gRPC, where it is in upper case. Returns a text in lower case with all of these. */
export function reasonsIn({ headers, body }: RawAnswer): string {
  const details = `${headers["grpc-status-details-bin"] ?? ""} ${body.toString("latin1")}`;
  const decoded = details.match(/[\w+/]{40,}/g)?.map((text) => Buffer.from(text, "base64").toString("latin1"));
  return `${details} ${decoded?.join(" ")}`.toLowerCase();
}

export function sendHttp1(url: string, raw: RawRequest): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const call: ClientRequest = httpRequest(
      new URL(raw.path, url),
      { method: raw.method ?? "POST", headers: raw.headers ?? {}, agent: false },
      (response: IncomingMessage) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          resolve({
            status: response.statusCode ?? 0,
            headers: plain({ ...response.headers, ...response.trailers }),
            body: Buffer.concat(chunks),
          });
          call.destroy();
        });
      },
    );
    call.on("error", reject);
    if (raw.withoutBody || raw.body instanceof Promise) call.flushHeaders();
    if (!raw.withoutBody) void Promise.resolve(raw.body).then((body) => call.end(body), reject);
  });
}

export async function sendHttp2(url: string, raw: RawRequest): Promise<RawAnswer> {
  // Without this option Node refuses to repeat a header that must be single.
  const options = { strictSingleValueFields: false } as object;
  const session: ClientHttp2Session = connect(url, options);
  try {
    return await new Promise((resolve, reject) => {
      session.on("error", reject);
      const stream = session.request(
        { ":method": raw.method ?? "POST", ":path": raw.path, ...raw.headers },
        // By default Node sends no body with a GET.
        raw.body === undefined ? {} : { endStream: false },
      );
      const chunks: Buffer[] = [];
      let headers: Record<string, unknown> = {};
      stream.on("response", (received) => {
        headers = { ...headers, ...received };
      });
      stream.on("trailers", (received) => {
        headers = { ...headers, ...received };
      });
      stream.on("error", reject);
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { ":status": status, ...rest } = headers;
        resolve({ status: Number(status), headers: plain(rest), body: Buffer.concat(chunks) });
      });
      if (!raw.withoutBody) void Promise.resolve(raw.body).then((body) => stream.end(body), reject);
    });
  } finally {
    session.destroy();
  }
}

function plain(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
