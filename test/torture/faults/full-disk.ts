import { execFile } from "node:child_process";
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { createTemporaryFolder } from "../../support/temporary-folder.ts";
import type { Fault } from "./fault.ts";

const DISK_MIB = 256;
const FULL_MS = 3_000;
const BLOCK_BYTES = 65_536;

/** A separate disk, small enough to fill. */
export type SmallDisk = { readonly path: string; remove(): Promise<void> };

/** Returns undefined if mounting is not permitted. */
export async function mountSmallDisk(): Promise<SmallDisk | undefined> {
  const folder = createTemporaryFolder("small-disk");
  try {
    await promisify(execFile)("mount", ["-t", "tmpfs", "-o", `size=${DISK_MIB}m,mode=0755`, "tmpfs", folder.path]);
  } catch {
    folder.remove();
    return undefined;
  }
  return {
    path: folder.path,
    remove: async () => {
      await promisify(execFile)("umount", [folder.path]);
      folder.remove();
    },
  };
}

/** Fills the disk of the database completely, then frees space. */
export function fullDisk({ path }: SmallDisk): Fault {
  return {
    name: "database disk full",
    strike: async ({ arena, onDatabaseKill }) => {
      const filler = join(path, "filler");
      fill(filler);
      await wait(FULL_MS);
      rmSync(filler);
      // PostgreSQL may have crashed, which loses asynchronous commits.
      onDatabaseKill();
      await arena.database.revive();
    },
  };
}

export function fill(file: string): void {
  const handle = openSync(file, "w");
  try {
    for (let size = BLOCK_BYTES; size >= 1; ) {
      try {
        writeSync(handle, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
        size >>= 4;
      }
    }
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
