import { connect } from "node:net";
import { join } from "node:path";

const timeoutMs = 2_000;
/** SSLRequest: the one message that a server answers in any state (with one byte) and does not log. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/**
 * Whether a server listens on the socket. The socket file, and even an existing pid, can outlive a SIGKILL.
 */
export async function probeSocket(socketDir: string): Promise<"answers" | "refuses" | "silent"> {
  const { promise, resolve } = Promise.withResolvers<"answers" | "refuses" | "silent">();
  const socket = connect(join(socketDir, ".s.PGSQL.5432"));
  socket.setTimeout(timeoutMs, () => resolve("silent"));
  socket.once("connect", () => socket.write(sslRequest));
  socket.once("data", () => resolve("answers"));
  socket.once("error", () => resolve("refuses"));
  socket.once("close", () => resolve("refuses"));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}
