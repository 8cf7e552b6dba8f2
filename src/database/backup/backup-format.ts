import { hash } from "node:crypto";
import { jsonIfValid } from "../../domain/json.ts";

/** A reason why a backup cannot be created or restored, as a message for the operator. */
export class BackupError extends Error {}

/**
 * A backup is a tar archive, compressed with zstd: the description, the files of each cell in a folder of its own, and
 * the manifest, which names every file before it with its size and hash.
 */
const FORMAT = 1;
export const DESCRIPTION = "vx-backup.json";
export const MANIFEST = "manifest.json";
/** The one cell of an embedded database. */
export const CELL = "cells/default/postgres/";

export type Description = {
  readonly format: typeof FORMAT;
  /** The release of vx that made the backup. */
  readonly release: string;
  readonly postgresql_major: string;
  readonly created_at: string;
  /** The size of the database when the backup started, for the progress. */
  readonly database_bytes: number;
};

export type FileRecord = { readonly bytes: number; readonly sha256: string };

export function describe(fields: Omit<Description, "format">): string {
  return `${JSON.stringify({ format: FORMAT, ...fields } satisfies Description)}\n`;
}

export function parseDescription(text: string): Description {
  const fields = parseObject(text, DESCRIPTION);
  if (fields.format !== FORMAT) {
    throw new BackupError(`the backup has format ${JSON.stringify(fields.format)}, this release reads format ${FORMAT}`);
  }
  const { release, postgresql_major, created_at, database_bytes } = fields;
  const isValid =
    [release, postgresql_major, created_at].every((field) => typeof field === "string") && typeof database_bytes === "number";
  if (!isValid) throw damaged(DESCRIPTION);
  return fields as Description;
}

/** The second line is the hash of the first, so that a changed manifest is detected. */
export function writeManifest(files: ReadonlyMap<string, FileRecord>): string {
  const line = JSON.stringify({ files: Object.fromEntries(files) });
  return `${line}\n${hash("sha256", line, "hex")}\n`;
}

/** Throws unless the manifest names exactly these files with these sizes and hashes. */
export function checkManifest(text: string, files: ReadonlyMap<string, FileRecord>): void {
  const [line = "", sum, end] = text.split("\n");
  if (sum !== hash("sha256", line, "hex") || end !== "") throw damaged(MANIFEST);
  const listed = Object.entries(parseObject(line, MANIFEST).files as Record<string, FileRecord>);
  for (const [name, { bytes, sha256 }] of listed) {
    const file = files.get(name);
    if (file === undefined) throw new BackupError(`the backup is incomplete: ${name} is missing`);
    if (file.bytes !== bytes || file.sha256 !== sha256) throw damaged(name);
  }
  if (listed.length !== files.size) throw new BackupError("the backup has files that its manifest does not name");
}

function parseObject(text: string, name: string): Record<string, unknown> {
  const value = jsonIfValid(text);
  if (typeof value !== "object" || value === null) throw damaged(name);
  return value as Record<string, unknown>;
}

export function damaged(name: string): BackupError {
  return new BackupError(`the backup is damaged: ${name} is not the file that was written`);
}

const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/** The path of a file below the PostgreSQL folder of a cell. Refuses every name that could be outside it. */
export function clusterPathOf(name: string): string {
  const path = name.startsWith(CELL) ? name.slice(CELL.length) : "";
  if (!isPlainPath(path)) throw new BackupError(`the backup has a file with the name ${JSON.stringify(name)}`);
  return path;
}

export function isPlainPath(path: string): boolean {
  return path.split("/").every((segment) => SEGMENT.test(segment));
}
