import { mkdirSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";

const SOCKET = ".s.PGSQL.5432";

/** A PostgreSQL socket in a folder of its own, which can disappear like that of a server that was killed. */
export type SocketProxy = {
  /** The URL of the same database through the proxy. */
  urlOf(url: string): string;
  sever(): Promise<void>;
  restore(): Promise<void>;
};

export async function startSocketProxy(parent: string, target: string): Promise<SocketProxy> {
  const folder = join(parent, "proxy");
  mkdirSync(folder);
  const path = join(folder, SOCKET);
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(join(target, SOCKET));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const restore = () => new Promise<void>((resolve) => server.listen(path, resolve));
  await restore();
  return {
    urlOf: (url) => url.replace(encodeURIComponent(target), encodeURIComponent(folder)),
    restore,
    sever: () =>
      new Promise((resolve) => {
        server.close(() => {
          rmSync(path, { force: true });
          resolve();
        });
        for (const socket of open) socket.destroy();
      }),
  };
}
