import { type ClientHttp2Session, connect } from "node:http2";
import { type Exchange, type HeaderList, PATIENCE_MS, piecesOf, type WireRequest } from "./exchange.ts";

/** Much longer than a server takes to reset a stream after its response. */
const LEFT_OPEN_MS = 1_000;

/** Sessions to a server, one after the other, each used until it ends. */
export class Http2Sender {
  readonly #url: URL;
  #session: ClientHttp2Session | undefined;

  constructor(url: URL) {
    this.#url = url;
  }

  send(request: WireRequest): Promise<Exchange> {
    const session = this.#open();
    return new Promise((resolve, reject) => {
      const { body, framing, trailers } = request;
      const stream = session.request(headersOf(request), { endStream: false, waitForTrailers: trailers.length > 0 });
      const timer = setTimeout(() => {
        stream.close();
        reject(new Error("no complete response"));
      }, PATIENCE_MS);
      const received = { status: 0, headers: [] as HeaderList, trailers: [] as HeaderList };
      const interim: number[] = [];
      const chunks: Buffer[] = [];
      let isEnded = false;
      let isLeft = false;
      const leave = () => {
        isLeft = !stream.closed;
        stream.close();
      };
      stream.on("wantTrailers", () => stream.sendTrailers(valuesOf(trailers)));
      stream.on("headers", (headers) => interim.push(Number(headers[":status"])));
      stream.on("response", (headers, _flags, raw) => {
        received.status = Number(headers[":status"]);
        received.headers = listOf(raw as unknown as string[]);
      });
      stream.on("trailers", (_headers, _flags, raw) => {
        received.trailers = listOf(raw as unknown as string[]);
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        isEnded = true;
        // The request is never completed: the server resets the stream, or the caller keeps it open.
        if (framing === "open") setTimeout(leave, LEFT_OPEN_MS).unref();
      });
      stream.on("error", () => undefined);
      stream.on("close", () => {
        clearTimeout(timer);
        const complete = isLeft ? "complete, and the request was left open" : "complete";
        const end = isEnded && received.status > 0 ? complete : `reset ${stream.rstCode}`;
        resolve({ ...received, interim, body: Buffer.concat(chunks), end, next: "" });
      });
      for (const piece of piecesOf(body, request.pieceBytes)) stream.write(piece);
      if (framing !== "open") stream.end();
    });
  }

  close(): void {
    this.#session?.destroy();
  }

  #open(): ClientHttp2Session {
    if (this.#session && !this.#session.destroyed && !this.#session.closed) return this.#session;
    // Without this option Node refuses to repeat a header that must be single.
    const options = { strictSingleValueFields: false } as object;
    this.#session = connect(this.#url, options);
    this.#session.on("error", () => undefined);
    return this.#session;
  }
}

function headersOf({ method, target, headers, body, framing }: WireRequest): Record<string, string | string[]> {
  const all = { ":method": method, ":path": target, ":authority": "vx", ...valuesOf(headers) };
  return framing === "length" ? { ...all, "content-length": String(body.length) } : all;
}

function valuesOf(headers: HeaderList): Record<string, string | string[]> {
  const values: Record<string, string[]> = {};
  for (const [name, value] of headers) {
    values[name] ??= [];
    values[name].push(value);
  }
  return Object.fromEntries(Object.entries(values).map(([name, all]) => [name, all.length === 1 ? (all[0] as string) : all]));
}

/** Raw headers alternate names and values. */
function listOf(raw: readonly string[]): HeaderList {
  const list: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string;
    if (!name.startsWith(":")) list.push([name, raw[i + 1] as string]);
  }
  return list;
}
