import { constants, type FileHandle, open, readdir, readFile, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { unless } from "./error.ts";
import { lastLines } from "./run-program.ts";
import type { ServerUser } from "./server-user.ts";

const fileName = "start.log";
const startLogMaxBytes = 64 * 1024;
const weekdayLogMaxBytes = 16 * 1024 * 1024;
const weekdayLogMaxAgeMs = 6 * 24 * 3600_000;

/** The log of a postmaster before its log collector starts; `excerpt` returns the lines logged since. */
type StartLog = { readonly file: FileHandle; excerpt(): Promise<string> };

export async function openStartLog(logDir: string, user: ServerUser): Promise<StartLog> {
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
export function reasonIn(excerpt: string): string {
  const lines = excerpt.split("\n").map((line) => line.replace(/^[\d-]+ [\d:.]+ \S+ \[\d+\] /, ""));
  const unusual = lines.filter((line) => !routine.test(line));
  return lastLines(unusual.join("\n")) || "its log gives no reason";
}

const weekdayLog = /^postgresql-\w+\.log$/;

/** Rotation empties a file only when a running server enters its weekday; this covers all other cases. */
export async function pruneLogs(logDir: string): Promise<void> {
  for (const name of await readdir(logDir)) {
    if (!weekdayLog.test(name)) continue;
    const path = join(logDir, name);
    const entry = await unless(["ENOENT"], stat(path));
    if (entry === undefined) continue;
    const isOld = Date.now() - entry.mtimeMs > weekdayLogMaxAgeMs;
    if (isOld || entry.size > weekdayLogMaxBytes) await unless(["ENOENT"], unlink(path));
  }
}

/**
 * Truncates large logs of a running server. The server appends, so it continues at the start of an emptied
 * file.
 */
export async function trimLogs(logDir: string): Promise<void> {
  for (const name of await readdir(logDir)) {
    if (!weekdayLog.test(name)) continue;
    // The flags prevent root from following a link or blocking on a pipe that the server user may have
    // created.
    const flags = constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await unless(["ENOENT", "ELOOP", "ENXIO"], open(join(logDir, name), flags));
    if (file === undefined) continue;
    try {
      const entry = await file.stat();
      if (entry.isFile() && entry.nlink === 1 && entry.size > weekdayLogMaxBytes) await file.truncate(0);
    } finally {
      await file.close();
    }
  }
}
