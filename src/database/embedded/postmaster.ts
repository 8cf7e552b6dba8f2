import { spawn } from "node:child_process";
import { constants, type FileHandle, open, readdir, readFile, stat } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { Binaries } from "./binaries.ts";
import { EmbeddedPostgresError, ignoring } from "./error.ts";
import { findPostmaster, removeForeignLocks } from "./pid-file.ts";
import type { Placement } from "./placement.ts";
import { lastLines, programEnvironment } from "./run-program.ts";
import { identity, makeServerFolder, replaceServerFile, type ServerUser } from "./server-user.ts";
import { startFiles } from "./settings.ts";
import { type BoundedWait, boundedWait, endLeftoverProcesses, stopPostmaster } from "./shutdown.ts";

const START_MS = 60_000;
const RETRY_MS = 50;

/**
 * For glibc: a backend keeps a few MiB of freed memory. Otherwise each statement returns its memory to the
 * system and allocates it again, which takes up to half of the statement's time.
 */
const KEEP_MEMORY = { MALLOC_TRIM_THRESHOLD_: "8388608", MALLOC_TOP_PAD_: "1048576" };

type LaunchOptions = {
  readonly maxConnections: number | undefined;
  /** Prints one line for the operator. */
  readonly print: (line: string) => void;
  /** Called after a postmaster was launched, before the wait for it. */
  readonly onWait: (() => void) | undefined;
};

/** Resolves when a postmaster of this cluster accepts connections, either an existing or a new one. */
export async function startPostmaster(
  place: Placement,
  binaries: Binaries,
  options: LaunchOptions,
): Promise<{ adopted: boolean }> {
  const { print } = options;
  const wait = boundedWait(
    START_MS,
    () => print("waiting for the database, which is recovering from a crash or being stopped …"),
    () => new EmbeddedPostgresError(timeoutMessage(place)),
  );
  for (;;) {
    const running = await findPostmaster(place);
    if (running === undefined) {
      if ((await launchPostmaster(place, binaries, options, wait)) === "ready") return { adopted: false };
      await wait.pause(RETRY_MS);
    } else if (running.status === "ready") {
      const state = running.socketDir === place.socketDir ? await probeSocket(place.socketDir) : "refuses";
      if (state === "responds") return { adopted: true };
      // It is shutting down, its socket was deleted, or its socket is in the former place of the data folder.
      if (state === "refuses") await stopPostmaster(place);
    }
    await wait.pause();
  }
}

function timeoutMessage({ clusterDir, logDir }: Placement): string {
  const seconds = START_MS / 1000;
  return `the database in ${clusterDir} was not ready after ${seconds} s; if it is recovering, wait and start again (its log is in ${logDir})`;
}

/** "again": a concurrent start was first, or the shared memory of a killed postmaster is still in use. */
async function launchPostmaster(
  place: Placement,
  binaries: Binaries,
  { maxConnections, onWait }: LaunchOptions,
  wait: BoundedWait,
): Promise<"ready" | "again"> {
  await makeServerFolder(place.logDir, place.user);
  await makeServerFolder(place.socketDir, place.user, place.hasTemporarySocketDir);
  await trimLogs(place.logDir);
  for (const [name, text] of Object.entries(startFiles({ ...place, maxConnections })))
    await replaceServerFile(join(place.clusterDir, name), text, place.user);
  await removeForeignLocks(place);
  await endLeftoverProcesses(place);
  const log = await openStartLog(place.logDir, place.user);
  try {
    const child = spawnPostmaster(place, binaries, log.file.fd);
    onWait?.();
    for (;;) {
      if (child.ended !== undefined) break;
      const running = await findPostmaster(place);
      if (running?.status === "ready" && running.pid === child.pid) return "ready";
      await wait.pause();
    }
    const excerpt = await log.excerpt();
    if ((await findPostmaster(place)) !== undefined) return "again";
    if (/pre-existing shared memory block|lock file ".*" (already exists|is empty)/.test(excerpt)) return "again";
    throw new EmbeddedPostgresError(`PostgreSQL did not start (${child.ended}): ${reasonIn(excerpt)}`);
  } finally {
    await log.file.close();
  }
}

type Child = { readonly pid: number | undefined; ended: string | undefined };

function spawnPostmaster(place: Placement, binaries: Binaries, output: number): Child {
  const child = spawn(binaries.postgres, ["-D", place.clusterDir], {
    // A separate process group: Ctrl-C must reach only this server, which stops PostgreSQL after all charges
    // are settled.
    detached: true,
    stdio: ["ignore", output, output],
    cwd: "/",
    env: { ...programEnvironment(), ...KEEP_MEMORY },
    ...identity(place.user),
  });
  const state: Child = { pid: child.pid, ended: undefined };
  child.once("error", (error) => {
    state.ended = error.message;
  });
  child.once("exit", (code, signal) => {
    state.ended = signal === null ? `exit code ${code}` : `ended by ${signal}`;
  });
  child.unref();
  return state;
}

const fileName = "start.log";
const startLogMaxBytes = 64 * 1024;
const weekdayLogMaxBytes = 16 * 1024 * 1024;

/** The log of a postmaster before its log collector starts; `excerpt` returns the lines logged since. */
type StartLog = { readonly file: FileHandle; excerpt(): Promise<string> };

async function openStartLog(logDir: string, user: ServerUser): Promise<StartLog> {
  const path = join(logDir, fileName);
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;
  const file = await open(path, O_APPEND | O_CREAT | O_NOFOLLOW | O_RDWR, 0o600);
  if (user.switched) await file.chown(user.uid, user.gid);
  if ((await file.stat()).size > startLogMaxBytes) await file.truncate(0);
  const sizes = new Map<string, number>();
  for (const name of await readdir(logDir)) sizes.set(name, (await stat(join(logDir, name))).size);
  return {
    file,
    async excerpt() {
      let text = "";
      for (const name of (await readdir(logDir)).sort((a) => (a === fileName ? -1 : 1))) {
        const bytes = await readFile(join(logDir, name));
        text += bytes.subarray(sizes.get(name) ?? 0).toString();
      }
      return text;
    },
  };
}

const routine = /starting PostgreSQL|listening on|redirecting log output|Future log output|was shut down at/;

/** The lines that give the reason, without timestamp and process id. */
function reasonIn(excerpt: string): string {
  const lines = excerpt.split("\n").map((line) => line.replace(/^[\d-]+ [\d:.]+ \S+ \[\d+\] /, ""));
  const unusual = lines.filter((line) => !routine.test(line));
  return lastLines(unusual.join("\n")) || "its log gives no reason";
}

const weekdayLog = /^postgresql-\w+\.log$/;

/**
 * Truncates large logs, also of a running server: it appends, so it continues at the start of an emptied file. Rotation empties a file
 * only when a running server enters its weekday.
 */
export async function trimLogs(logDir: string): Promise<void> {
  for (const name of await readdir(logDir)) {
    if (!weekdayLog.test(name)) continue;
    // The flags prevent root from following a link or blocking on a pipe that the server user may have
    // created.
    const flags = constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await ignoring(["ENOENT", "ELOOP", "ENXIO"], open(join(logDir, name), flags));
    if (file === undefined) continue;
    try {
      const entry = await file.stat();
      if (entry.isFile() && entry.nlink === 1 && entry.size > weekdayLogMaxBytes) await file.truncate(0);
    } finally {
      await file.close();
    }
  }
}

const PROBE_TIMEOUT_MS = 2_000;
/** SSLRequest: the one message to which a server responds in any state (with one byte) and does not log. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/**
 * Whether a server listens on the socket. The socket file, and even an existing pid, can outlive a SIGKILL.
 */
async function probeSocket(socketDir: string): Promise<"responds" | "refuses" | "silent"> {
  const { promise, resolve } = Promise.withResolvers<"responds" | "refuses" | "silent">();
  const socket = connect(join(socketDir, ".s.PGSQL.5432"));
  socket.setTimeout(PROBE_TIMEOUT_MS, () => resolve("silent"));
  socket.once("connect", () => socket.write(sslRequest));
  socket.once("data", () => resolve("responds"));
  socket.once("error", () => resolve("refuses"));
  socket.once("close", () => resolve("refuses"));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}
