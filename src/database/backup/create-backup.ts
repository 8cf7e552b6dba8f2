import { createHash, hash } from "node:crypto";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { connect, type DatabaseAddress, type Sql } from "../driver/connect.ts";
import { RELEASE } from "../schema/release.ts";
import { BackupError, CELL, DESCRIPTION, describe, type FileRecord, MANIFEST, writeManifest } from "./backup-format.ts";
import { CONTROL_FILE, ignoreMissing, listClusterFiles } from "./cluster-files.ts";
import { writeNewFile } from "./new-file.ts";
import { END_BYTES, paddingOf, writeHeader } from "./tar.ts";

/** pg_backup_start waits for a checkpoint. */
const STATEMENT_TIMEOUT_MS = 30 * 60_000;
const SLOT = "vx_backup";

export type CreateOptions = {
  readonly file: string;
  readonly address: DatabaseAddress;
  readonly clusterDir: string;
  readonly createdAt: Date;
  readonly signal: AbortSignal;
  readonly onProgress: (bytesDone: number, bytesInTotal: number) => void;
};

type CreatedBackup = {
  readonly bytes: number;
  readonly databaseBytes: number;
  readonly walSegments: number;
};

/**
 * Copies a running database into one file. The write-ahead log from the start to the end of the copy is in the file too,
 * so a restored database has everything that was committed before the end.
 */
export async function createBackup(options: CreateOptions): Promise<CreatedBackup> {
  const { file: path, address, signal } = options;
  let created: CreatedBackup | undefined;
  await writeNewFile(path, async (file) => {
    signal.throwIfAborted();
    // When this connection ends, even because this process is killed, PostgreSQL ends the backup and drops the slot.
    const sql = await connect(address, { statementTimeoutMs: STATEMENT_TIMEOUT_MS, name: "vx backup" });
    try {
      created = await writeArchive(sql, file, options);
    } finally {
      await sql.end({ timeout: 5 });
    }
  });
  return created as CreatedBackup;
}

async function writeArchive(sql: Sql, file: FileHandle, options: CreateOptions): Promise<CreatedBackup> {
  const counts = { databaseBytes: 0, walSegments: 0 };
  await pipeline(
    Readable.from(contentOf(sql, options, counts)),
    createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
    async (compressed: AsyncIterable<Buffer>) => {
      for await (const chunk of compressed) await file.writeFile(chunk);
    },
    { signal: options.signal },
  );
  return { ...counts, bytes: (await file.stat()).size };
}

async function* contentOf(
  sql: Sql,
  { clusterDir, createdAt, onProgress }: CreateOptions,
  counts: { databaseBytes: number; walSegments: number },
): AsyncGenerator<Buffer> {
  await startBackup(sql);
  const files = await listClusterFiles(clusterDir);
  const inTotal = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const content = new ArchiveContent();
  yield* content.text(
    DESCRIPTION,
    describe({
      release: RELEASE,
      postgresql_major: (await readFile(join(clusterDir, "PG_VERSION"), "utf8")).trim(),
      created_at: createdAt.toISOString(),
      database_bytes: inTotal,
    }),
  );
  for (const { path } of files) {
    const from = join(clusterDir, path);
    const chunks = path === CONTROL_FILE ? content.text(CELL + path, await readUnchanged(from)) : content.file(CELL + path, from);
    for await (const chunk of chunks) {
      counts.databaseBytes += chunk.length;
      onProgress(counts.databaseBytes, inTotal);
      yield chunk;
    }
  }
  const { label, segments } = await stopBackup(sql);
  yield* content.text(`${CELL}backup_label`, label);
  for (const name of segments) {
    const file = `${CELL}pg_wal/${name}`;
    yield* content.file(file, join(clusterDir, "pg_wal", name));
    // max_slot_wal_keep_size can end the slot.
    if (!content.has(file))
      throw new BackupError(
        `PostgreSQL removed ${name}, a part of the write-ahead log that the backup needs: try again, with max_slot_wal_keep_size = -1`,
      );
  }
  counts.walSegments = segments.length;
  yield* content.end();
}

/** The slot keeps the write-ahead log from the checkpoint of the backup on. */
async function startBackup(sql: Sql): Promise<void> {
  const [row] = await sql<{ level: string }[]>`SELECT current_setting('wal_level') AS level`;
  if (row?.level === "minimal") {
    throw new BackupError(
      "the database was started by an earlier release, with settings that permit no online backup; restart the server, then try again",
    );
  }
  try {
    await sql`SELECT pg_create_physical_replication_slot(${SLOT}, true, true)`;
  } catch (error) {
    if ((error as { code?: string }).code !== "42710") throw error;
    throw new BackupError("another backup of this database is running");
  }
  await sql`SELECT pg_backup_start('vx backup', true)`;
}

async function stopBackup(sql: Sql): Promise<{ label: string; segments: string[] }> {
  // There is no archive to wait for.
  const [row] = await sql<{ lsn: string; label: string; tablespaces: string; segment_bytes: number }[]>`
    SELECT lsn::text AS lsn, labelfile AS label, spcmapfile AS tablespaces,
           (SELECT setting::int FROM pg_settings WHERE name = 'wal_segment_size') AS segment_bytes
    FROM pg_backup_stop(false)`;
  const [, firstFile = ""] = /\(file (\w+)\)/.exec(row?.label ?? "") ?? [];
  if (row === undefined || row.tablespaces !== "")
    throw new BackupError("the database has tablespaces, which a backup cannot contain");
  const range = { firstFile, stop: row.lsn, segmentBytes: row.segment_bytes };
  return { label: row.label, segments: walSegments(range) };
}

/** Reads a small file that PostgreSQL may be writing, until two reads agree. */
async function readUnchanged(path: string): Promise<Buffer> {
  for (let before = await readFile(path); ; ) {
    const after = await readFile(path);
    if (after.equals(before)) return after;
    before = after;
  }
}

const CHUNK_BYTES = 1024 * 1024;

/** The bytes of a backup before compression, and a record of each file for the manifest. */
export class ArchiveContent {
  readonly #records = new Map<string, FileRecord>();

  /** A small file whose content is known. */
  *text(name: string, text: string | Buffer): Generator<Buffer> {
    const content = Buffer.from(text);
    this.#records.set(name, { bytes: content.length, sha256: hash("sha256", content, "hex") });
    yield* entryOf(name, content);
  }

  /**
   * A file that PostgreSQL may write meanwhile; no content if it was removed. The size in the header is the
   * size when the copy starts: data appended later is in the write-ahead log, and data that was cut off becomes zeros.
   */
  async *file(name: string, path: string): AsyncGenerator<Buffer> {
    const file = await open(path, "r").catch(ignoreMissing);
    if (file === undefined) return;
    try {
      const { size } = await file.stat();
      const digest = createHash("sha256");
      yield writeHeader({ name, bytes: size });
      for await (const chunk of chunksOf(file, size)) {
        digest.update(chunk);
        yield chunk;
      }
      yield* padding(size);
      this.#records.set(name, { bytes: size, sha256: digest.digest("hex") });
    } finally {
      await file.close();
    }
  }

  /** Whether the file was there. */
  has(name: string): boolean {
    return this.#records.has(name);
  }

  *end(): Generator<Buffer> {
    yield* entryOf(MANIFEST, Buffer.from(writeManifest(this.#records)));
    yield Buffer.alloc(END_BYTES);
  }
}

function* entryOf(name: string, content: Buffer): Generator<Buffer> {
  yield writeHeader({ name, bytes: content.length });
  if (content.length > 0) yield content;
  yield* padding(content.length);
}

/** Never yields an empty chunk: a stream may not ask for another one after it. */
function* padding(bytes: number): Generator<Buffer> {
  if (paddingOf(bytes) > 0) yield Buffer.alloc(paddingOf(bytes));
}

async function* chunksOf(file: FileHandle, bytes: number): AsyncGenerator<Buffer> {
  for (let position = 0; position < bytes; ) {
    const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, bytes - position));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
    const isCutOff = bytesRead === 0;
    const content = isCutOff ? chunk : chunk.subarray(0, bytesRead);
    position += content.length;
    yield content;
  }
}

/** The first segment of the write-ahead log that a backup needs, and the position up to which it needs it. */
type WalRange = { readonly firstFile: string; readonly stop: string; readonly segmentBytes: number };

const SEGMENT_NAME = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$/;
const POSITION = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/;
const LOG_FILE_BYTES = 0x1_0000_0000n;

/** The names of the segments, in the form that PostgreSQL gives the files. */
export function walSegments({ firstFile, stop, segmentBytes }: WalRange): string[] {
  const [, timeline, log, segment] = SEGMENT_NAME.exec(firstFile) ?? [];
  const [, high, low] = POSITION.exec(stop) ?? [];
  if (timeline === undefined || high === undefined)
    throw new Error(`not a range of the write-ahead log: ${firstFile} to ${stop}`);
  const perLog = LOG_FILE_BYTES / BigInt(segmentBytes);
  const first = BigInt(`0x${log}`) * perLog + BigInt(`0x${segment}`);
  // The position is the end of the last record, so a segment that starts there is not needed.
  const last = (BigInt(`0x${high}`) * LOG_FILE_BYTES + BigInt(`0x${low}`) - 1n) / BigInt(segmentBytes);
  const names: string[] = [];
  for (let number = first; number <= last; number++) {
    names.push(`${timeline}${hex(number / perLog)}${hex(number % perLog)}`);
  }
  return names;
}

function hex(value: bigint): string {
  return value.toString(16).toUpperCase().padStart(8, "0");
}
