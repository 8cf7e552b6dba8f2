import { connect, type Socket } from "node:net";
import { type Load, runCallers } from "./load.ts";

type HttpTarget = {
  readonly url: string;
  /** Sent in turn. */
  readonly requests: readonly string[];
  readonly connections: number;
  readonly seconds: number;
  /** Calls per second. Default: each caller sends its next call at once. */
  readonly rate?: number;
};

/**
 * An arm with one connection per caller and one request at a time. Fails on any status but 200. Each round
 * opens new connections, because servers close those that are idle while others are measured.
 */
export function httpArm({ url, requests, connections, seconds, rate }: HttpTarget): () => Promise<Load> {
  const { hostname, port } = new URL(url);
  const bytes = requests.map((text) => Buffer.from(text, "latin1"));
  let turn = 0;
  const next = () => bytes[turn++ % bytes.length] as Buffer;
  return async () => {
    const callers = await Promise.all(
      Array.from({ length: connections }, async () => {
        const socket = connect({ port: Number(port), host: hostname, noDelay: true });
        await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
        return createCaller(socket, next);
      }),
    );
    try {
      return await runCallers(connections, seconds, (caller) => (callers[caller] as Caller).call(), rate);
    } finally {
      for (const { socket } of callers) socket.destroy();
    }
  };
}

type Caller = ReturnType<typeof createCaller>;

function createCaller(socket: Socket, next: () => Buffer) {
  let settle: { resolve: () => void; reject: (error: Error) => void } | undefined;
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    const head = text.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = /content-length: (\d+)/i.exec(text)?.[1];
    if (length === undefined || text.length < head + 4 + Number(length)) return;
    const response = text;
    text = "";
    if (response.startsWith("HTTP/1.1 200")) settle?.resolve();
    else settle?.reject(new Error(response));
  });
  socket.on("close", () => settle?.reject(new Error("the server closed the connection")));
  const call = () =>
    new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
      if (socket.destroyed) reject(new Error("the server closed the connection"));
      socket.write(next());
    });
  return { socket, call };
}

export function getRequest(path: string, secret: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: vx\r\nauthorization: Bearer ${secret}\r\n\r\n`;
}

export function postRequest(path: string, body: string, secret: string, headers = ""): string {
  return `POST ${path} HTTP/1.1\r\nhost: vx\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`;
}

/** A small prompt for the sandbox, which replies without delay. */
export function generateBody(): string {
  return JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: "Say hello." }], max_tokens: 100 });
}
