import { connect, type Socket } from "node:net";

type TcpTalk = { readonly text: string; readonly bytes: Buffer; readonly closedByServer: boolean };

/** Sends raw bytes and reads until the server closes the connection or `until` appears. */
export function talk(url: string, bytes: string | Uint8Array | (string | Uint8Array)[], until?: RegExp): Promise<TcpTalk> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket: Socket = connect(Number(port), hostname);
    const finish = (closedByServer: boolean) => {
      const all = Buffer.concat(chunks);
      socket.destroy();
      resolve({ text: all.toString("latin1"), bytes: all, closedByServer });
    };
    socket.on("connect", () => {
      for (const part of [bytes].flat()) socket.write(part);
    });
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (until?.test(Buffer.concat(chunks).toString("latin1"))) finish(false);
    });
    socket.on("end", () => finish(true));
    socket.on("close", () => finish(true));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "ECONNRESET" || error.code === "EPIPE" ? finish(true) : reject(error),
    );
  });
}
