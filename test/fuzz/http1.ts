import { connect, type Socket } from "node:net";
import type { FuzzAnswer } from "./answers.ts";
import { mutate } from "./bodies.ts";
import type { Random } from "./random.ts";
import type { FuzzRequest } from "./requests.ts";

/** Longer than any call here. */
const PATIENCE_MS = 10_000;
/** The server waits longer than this for the rest of an incomplete request. */
const BROKEN_PATIENCE_MS = 30;

/** Sequential connections, each used until the server closes it. */
export class RawConnection {
  readonly #url: URL;
  #socket: Socket | undefined;

  constructor(url: string) {
    this.#url = new URL(url);
  }

  /** Undefined if the request gets no response. */
  async send(request: FuzzRequest, random: Random): Promise<FuzzAnswer | undefined> {
    const fresh = this.#socket === undefined || this.#socket.destroyed;
    const socket = fresh ? await this.#open() : (this.#socket as Socket);
    const bytes = request.broken ? mutate(random, bytesOf(request, random)) : bytesOf(request, random);
    const answer = await exchange(socket, bytes, request);
    // The server may close an idle connection while the next request is being sent.
    if (answer === "closed" && !fresh && !request.broken) {
      this.#socket = undefined;
      return await this.send(request, random);
    }
    if (answer === "closed" || answer === "silent" || request.broken || answer.headers.connection === "close") this.close();
    if (answer === "silent" && !request.broken) throw new Error(`no answer within ${PATIENCE_MS} ms`);
    if (answer === "closed" && !request.broken) throw new Error("closed without an answer");
    return typeof answer === "string" ? undefined : answer;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open(): Promise<Socket> {
    const socket = connect(Number(this.#url.port), this.#url.hostname);
    this.#socket = socket;
    socket.on("error", () => undefined);
    return new Promise((resolve, reject) => {
      socket.once("connect", () => resolve(socket));
      socket.once("error", reject);
    });
  }
}

function bytesOf({ method, target, headers, body }: FuzzRequest, random: Random): Buffer {
  const lines = [`${method} ${target} HTTP/1.1`, "host: vx", ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (body === undefined) return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
  if (random.chance(0.8)) {
    return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\ncontent-length: ${body.length}\r\n\r\n`), body]);
  }
  const pieces: Uint8Array[] = [Buffer.from(`${lines.join("\r\n")}\r\ntransfer-encoding: chunked\r\n\r\n`)];
  for (let at = 0; at < body.length; ) {
    const chunk = body.subarray(at, at + 1 + random.below(4_000));
    pieces.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
    at += chunk.length;
  }
  return Buffer.concat([...pieces, Buffer.from("0\r\n\r\n")]);
}

function exchange(socket: Socket, bytes: Uint8Array, request: FuzzRequest): Promise<FuzzAnswer | "closed" | "silent"> {
  return new Promise((resolve) => {
    let seen = Buffer.alloc(0);
    const timer = setTimeout(() => finish("silent"), request.broken ? BROKEN_PATIENCE_MS : PATIENCE_MS);
    const finish = (result: FuzzAnswer | "closed" | "silent") => {
      clearTimeout(timer);
      socket.off("data", read).off("close", close).off("error", close);
      resolve(result);
    };
    const read = (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk]);
      const answer = parseAnswer(seen, request.method);
      if (answer) finish(answer);
    };
    const close = () => finish("closed");
    socket.on("data", read).on("close", close).on("error", close);
    socket.write(bytes);
  });
}

/** The first complete final response. */
function parseAnswer(bytes: Buffer, method: string): FuzzAnswer | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first, ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first ?? "")?.[1]);
  const rest = bytes.subarray(end + 4);
  if (status === 100) return parseAnswer(rest, method);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  if (method === "HEAD" || status === 204 || status === 304) return { status, headers, body: Buffer.alloc(0) };
  if (headers["transfer-encoding"] === "chunked") {
    return rest.subarray(-5).toString() === "0\r\n\r\n" ? { status, headers, body: rest } : undefined;
  }
  const length = Number(headers["content-length"] ?? 0);
  return rest.length < length ? undefined : { status, headers, body: rest.subarray(0, length) };
}
