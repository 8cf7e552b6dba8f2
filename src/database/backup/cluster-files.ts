import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { BackupError, isPlainPath } from "./backup-format.ts";

/** `path` is relative to the PostgreSQL folder. */
type ClusterFile = { readonly path: string; readonly bytes: number };

/** PostgreSQL creates the contents of these folders itself; pg_wal is copied at the end of a backup. */
const EMPTY_FOLDERS = [
  ...["pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots"],
  ...["pg_stat_tmp", "pg_subtrans"],
];
/** Files of the running server, and of an earlier backup. */
const NOT_COPIED = [
  ...["postmaster.pid", "postmaster.opts", "backup_label", "backup_label.old", "tablespace_map"],
  ...["backup_manifest", "current_logfiles", "current_logfiles.tmp", "postgresql.auto.conf.tmp"],
  ...["recovery.signal", "standby.signal"],
];
/** Sort files, caches, temporary tables, and files that vx was replacing. */
const TEMPORARY = /(^|\/)(pgsql_tmp|pg_internal\.init|t\d+_\d+)|^(vx|pg_hba)\.conf\./;

/** Folders that a PostgreSQL folder needs and that may be empty. */
export const FOLDERS: readonly string[] = [
  ...EMPTY_FOLDERS,
  ...["base", "global", "pg_commit_ts", "pg_logical", "pg_logical/mappings", "pg_logical/snapshots"],
  ...["pg_multixact", "pg_multixact/members", "pg_multixact/offsets", "pg_stat", "pg_tblspc"],
  ...["pg_twophase", "pg_xact"],
];

/** Read last, as by pg_basebackup: the server rewrites it at each checkpoint. */
export const CONTROL_FILE = "global/pg_control";

/** The files that an online backup copies, without the write-ahead log. Files may appear and disappear meanwhile. */
export async function listClusterFiles(clusterDir: string): Promise<ClusterFile[]> {
  const files: ClusterFile[] = [];
  for (const path of (await readdir(clusterDir, { recursive: true })).sort()) {
    if (!isCopied(path)) continue;
    const entry = await lstat(join(clusterDir, path)).catch(ignoreMissing);
    if (entry === undefined || entry.isDirectory()) continue;
    if (!entry.isFile()) {
      throw new BackupError(`${join(clusterDir, path)} is not a regular file; a backup cannot contain tablespaces or links`);
    }
    if (!isPlainPath(path)) {
      throw new BackupError(`${join(clusterDir, path)} is not a file of PostgreSQL; move it away`);
    }
    files.push({ path, bytes: entry.size });
  }
  return [...files.filter(({ path }) => path !== CONTROL_FILE), ...files.filter(({ path }) => path === CONTROL_FILE)];
}

function isCopied(path: string): boolean {
  const [top = ""] = path.split("/");
  if (EMPTY_FOLDERS.includes(top)) return path === top;
  return !NOT_COPIED.includes(path) && !TEMPORARY.test(path);
}

const SEGMENT = /^pg_wal\/[0-9A-F]{24}$/;

/**
 * Whether a restore writes this file of a backup. Others could make PostgreSQL run a command or use files elsewhere: settings,
 * `recovery.signal`, `standby.signal` and `tablespace_map`.
 */
export function isRestored(path: string): boolean {
  if (path === "PG_VERSION" || path === "backup_label") return true;
  const [top = ""] = path.split("/");
  if (EMPTY_FOLDERS.includes(top)) return SEGMENT.test(path);
  return FOLDERS.includes(top) && path !== top && top !== "pg_tblspc" && isCopied(path);
}

export function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
