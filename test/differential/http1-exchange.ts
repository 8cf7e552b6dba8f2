import { connect, type Socket } from "node:net";
import { type Exchange, type HeaderList, PATIENCE_MS, piecesOf, type WireRequest } from "./exchange.ts";

const NEXT_REQUEST = "GET /livez HTTP/1.1\r\nhost: vx\r\nconnection: close\r\n\r\n";

/** Sends the request on its own connection. */
export function sendOverHttp1(url: URL, request: WireRequest): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname);
    const timer = setTimeout(() => fail(new Error("no complete response")), PATIENCE_MS);
    let seen = Buffer.alloc(0);
    let first: Exchange | undefined;
    const finish = (exchange: Exchange) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(exchange);
    };
    const fail = (error: Error) => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const read = (isClosed: boolean) => {
      const response = parseResponse(seen, request.method === "HEAD", isClosed);
      if (!response) {
        if (isClosed) finish(first ? { ...first, next: "closed" } : CLOSED);
        return;
      }
      if (first) {
        finish({ ...first, next: String(response.exchange.status) });
        return;
      }
      first = response.exchange;
      seen = seen.subarray(response.bytes);
      if (request.isFollowed && first.end === "complete" && !isClosed) {
        // The server may have already closed the connection.
        if (socket.writable) socket.write(NEXT_REQUEST);
        if (seen.length > 0) read(false);
      } else finish(first);
    };
    socket.on("data", (bytes: Buffer) => {
      seen = Buffer.concat([seen, bytes]);
      read(false);
    });
    // A reset and an orderly close differ only by how many bytes of the request were unread.
    socket.on("error", () => undefined);
    socket.on("close", () => read(true));
    socket.on("connect", () => writeRequest(socket, request));
  });
}

const CLOSED: Exchange = { interim: [], status: 0, headers: [], body: Buffer.alloc(0), trailers: [], end: "closed", next: "" };

function writeRequest(socket: Socket, request: WireRequest): void {
  const { method, target, headers, body, framing, trailers } = request;
  const isChunked = framing === "unknown";
  const lines = [`${method} ${target} HTTP/1.1`, ...headers.map(lineOf)];
  if (isChunked) lines.push("transfer-encoding: chunked");
  if (framing === "length") lines.push(`content-length: ${body.length}`);
  // More than the body has, so that the server waits for the rest.
  if (framing === "open") lines.push(`content-length: ${body.length + 1}`);
  socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  for (const piece of piecesOf(body, request.pieceBytes)) {
    if (isChunked) socket.write(`${piece.length.toString(16)}\r\n`);
    socket.write(piece);
    if (isChunked) socket.write("\r\n");
  }
  if (isChunked) socket.write(`0\r\n${trailers.map((one) => `${lineOf(one)}\r\n`).join("")}\r\n`, "latin1");
}

function lineOf([name, value]: readonly [string, string]): string {
  return `${name}: ${value}`;
}

type Parsed = { readonly exchange: Exchange; readonly bytes: number };

/** The first final response; undefined until it is complete. */
function parseResponse(bytes: Buffer, isHead: boolean, isClosed: boolean, interim: number[] = []): Parsed | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1]);
  const start = end + 4;
  if (status >= 100 && status < 200) {
    const rest = parseResponse(bytes.subarray(start), isHead, isClosed, [...interim, status]);
    return rest && { ...rest, bytes: rest.bytes + start };
  }
  const headers = headersOf(lines);
  const value = (name: string) => headers.find(([key]) => key === name)?.[1];
  const base = { interim, status, headers, trailers: [], next: "" };
  const complete = (body: Buffer, length: number, trailers: HeaderList = []): Parsed => ({
    exchange: { ...base, body, trailers, end: "complete" },
    bytes: start + length,
  });
  const cut = (body: Buffer): Parsed | undefined =>
    isClosed ? { exchange: { ...base, body, end: "closed" }, bytes: bytes.length } : undefined;
  const rest = bytes.subarray(start);
  if (isHead || status === 204 || status === 304) return complete(Buffer.alloc(0), 0);
  if (value("transfer-encoding") === "chunked") {
    const chunks = readChunks(rest);
    return chunks.length === undefined ? cut(chunks.body) : complete(chunks.body, chunks.length, chunks.trailers);
  }
  const announced = value("content-length");
  if (announced === undefined) return cut(rest);
  const length = Number(announced);
  return rest.length < length ? cut(rest) : complete(rest.subarray(0, length), length);
}

/** The body so far; the length is undefined until the last chunk. */
function readChunks(bytes: Buffer): { body: Buffer; trailers: HeaderList; length: number | undefined } {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = bytes.indexOf("\r\n", at);
    const size = end < 0 ? undefined : Number.parseInt(bytes.subarray(at, end).toString("latin1"), 16);
    if (size === undefined) return { body: Buffer.concat(chunks), trailers: [], length: undefined };
    at = end + 2;
    if (size === 0) {
      const last = bytes.indexOf("\r\n\r\n", at - 2);
      if (last < 0) return { body: Buffer.concat(chunks), trailers: [], length: undefined };
      const lines = bytes.subarray(at, Math.max(at, last)).toString("latin1").split("\r\n").filter(Boolean);
      return { body: Buffer.concat(chunks), trailers: headersOf(lines), length: last + 4 };
    }
    if (bytes.length < at + size + 2) return { body: Buffer.concat(chunks), trailers: [], length: undefined };
    chunks.push(bytes.subarray(at, at + size));
    at += size + 2;
  }
}

function headersOf(lines: readonly string[]): HeaderList {
  return lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
}
