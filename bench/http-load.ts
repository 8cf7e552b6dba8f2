import { connect, type Socket } from "node:net";

export type HttpLoad = { call(caller: number): Promise<void>; close(): void };

/**
 * One connection per caller, with one request at a time: each sends the given requests in turn. Fails on any
 * status but 200.
 */
export async function openHttpLoad(
  url: string,
  connections: number,
  request: string | readonly string[],
): Promise<HttpLoad> {
  const { hostname, port } = new URL(url);
  const requests = [request].flat().map((text) => Buffer.from(text, "latin1"));
  let turn = 0;
  const next = () => requests[turn++ % requests.length] as Buffer;
  const callers = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ port: Number(port), host: hostname, noDelay: true });
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return createCaller(socket, next);
    }),
  );
  return {
    call: (caller) => callers[caller % callers.length]?.() ?? Promise.reject(new Error("no connection")),
    close: () => {
      for (const caller of callers) caller.socket.destroy();
    },
  };
}

function createCaller(socket: Socket, next: () => Buffer) {
  let settle: { resolve: () => void; reject: (error: Error) => void } | undefined;
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    const head = text.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = /content-length: (\d+)/i.exec(text)?.[1];
    if (length === undefined || text.length < head + 4 + Number(length)) return;
    const ok = text.startsWith("HTTP/1.1 200");
    const answer = text;
    text = "";
    if (ok) settle?.resolve();
    else settle?.reject(new Error(answer));
  });
  socket.on("close", () => settle?.reject(new Error("the server closed the connection")));
  const call = () =>
    new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
      if (socket.destroyed) reject(new Error("the server closed the connection"));
      socket.write(next());
    });
  return Object.assign(call, { socket });
}

export function getMeRequest(secret: string): string {
  return getRequest("/v1/me", secret);
}

export function getRequest(path: string, secret: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: vx\r\nauthorization: Bearer ${secret}\r\n\r\n`;
}

export function connectGetMeRequest(secret: string): string {
  return `POST /vx.v1.MeService/GetMe HTTP/1.1\r\nhost: vx\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`;
}

export function postRequest(path: string, body: string, secret: string, headers = ""): string {
  return `POST ${path} HTTP/1.1\r\nhost: vx\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`;
}

/** A small prompt for the sandbox, which replies without delay. */
export function generateBody(): string {
  return JSON.stringify({
    model: "vx-sandbox-small",
    messages: [{ role: "user", content: "Say hello." }],
    max_tokens: 100,
  });
}
