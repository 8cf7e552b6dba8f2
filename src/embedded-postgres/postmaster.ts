import { spawn } from "node:child_process";
import { join } from "node:path";
import type { Binaries } from "./binaries.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { findPostmaster, removeForeignLocks } from "./pid-file.ts";
import type { Placement } from "./placement.ts";
import { programEnvironment } from "./run-program.ts";
import { makeServerFolder, replaceServerFile } from "./server-folder.ts";
import { identity } from "./server-user.ts";
import { startFiles } from "./settings.ts";
import { endLeftoverProcesses, stopPostmaster } from "./shutdown.ts";
import { probeSocket } from "./socket.ts";
import { openStartLog, pruneLogs, reasonIn } from "./start-log.ts";
import { type BoundedWait, boundedWait } from "./wait.ts";

const startMs = 60_000;
const retryMs = 50;

/**
 * For glibc: a backend keeps a few MiB of freed memory. Otherwise each statement returns its memory to the
 * system and allocates it again, which takes up to half of the statement's time.
 */
const keepsMemory = { MALLOC_TRIM_THRESHOLD_: "8388608", MALLOC_TOP_PAD_: "1048576" };

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
    startMs,
    () => print("waiting for the database, which is recovering from a crash or being stopped …"),
    () => new EmbeddedPostgresError(timeoutMessage(place)),
  );
  for (;;) {
    const running = await findPostmaster(place);
    if (running === undefined) {
      if ((await launchPostmaster(place, binaries, options, wait)) === "ready") return { adopted: false };
      await wait.pause(retryMs);
    } else if (running.status === "ready") {
      const answer = running.socketDir === place.socketDir ? await probeSocket(place.socketDir) : "refuses";
      if (answer === "answers") return { adopted: true };
      // It is shutting down, its socket was deleted, or its socket is in the former place of the data folder.
      if (answer === "refuses") await stopPostmaster(place);
    }
    await wait.pause();
  }
}

function timeoutMessage({ clusterDir, logDir }: Placement): string {
  const seconds = startMs / 1000;
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
  await pruneLogs(place.logDir);
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
    if (/pre-existing shared memory block|lock file ".*" (already exists|is empty)/.test(excerpt))
      return "again";
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
    env: { ...programEnvironment(), ...keepsMemory },
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
