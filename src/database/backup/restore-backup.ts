import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { Readable } from "node:stream";
import { constants, createZstdDecompress, zstdCompressSync } from "node:zlib";
import { installCluster } from "../embedded/install-cluster.ts";
import { compareReleases, RELEASE } from "../schema/release.ts";
import {
  BackupError,
  checkManifest,
  clusterPathOf,
  DESCRIPTION,
  type Description,
  type FileRecord,
  MANIFEST,
  parseDescription,
} from "./backup-format.ts";
import { FOLDERS, isRestored } from "./cluster-files.ts";
import { BLOCK_BYTES, paddingOf, readHeader, type TarHeader } from "./tar.ts";

export type RestoreOptions = {
  readonly file: string;
  readonly dataDir: string;
  /** Moves an existing database aside, under a name that ends with this text. */
  readonly replaceAs: string | undefined;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly onProgress: (bytesDone: number, bytesInTotal: number) => void;
};

export type RestoredBackup = {
  readonly description: Description;
  readonly clusterDir: string;
  readonly movedTo: string | undefined;
};

/** Puts the database of a backup into a data folder, recovered, and stopped. */
export async function restoreBackup(options: RestoreOptions): Promise<RestoredBackup> {
  let description: Description | undefined;
  const installed = await installCluster(options, async (folder, major) => {
    for (const path of FOLDERS) await folder.makeFolder(path);
    await readArchive(options.file, options.signal, {
      description: (found) => {
        requireReadable(found, major);
        description = found;
      },
      file: async (path, content) => {
        if (isRestored(path)) await folder.writeFile(path, content);
        else for await (const _ of content);
      },
      progress: options.onProgress,
    });
    options.signal.throwIfAborted();
  });
  return { ...installed, description: description as Description };
}

function requireReadable({ release, postgresql_major }: Description, major: string): void {
  if (postgresql_major !== major) {
    throw new BackupError(
      `the backup is of PostgreSQL ${postgresql_major}, but this is ${major}: restore it with vx ${release} (docs/upgrading.md)`,
    );
  }
  if (compareReleases(release, RELEASE) > 0) {
    throw new BackupError(`the backup was made by vx ${release}, which is newer than this one, ${RELEASE}`);
  }
}

const MAX_DESCRIPTION_BYTES = 64 * 1024;
const MAX_MANIFEST_BYTES = 256 * 1024 * 1024;
const MAX_FILES = 1_000_000;
const CHUNK_BYTES = 1024 * 1024;
/** Node's compressor may write one at the end. */
const EMPTY_FRAME = zstdCompressSync("", { params: { [constants.ZSTD_c_checksumFlag]: 1 } });

type ArchiveSink = {
  /** Called first. Throws if this backup cannot be restored here. */
  description(description: Description): void | Promise<void>;
  /** `path` is relative to the PostgreSQL folder. Must read the content to its end. */
  file(path: string, content: AsyncIterable<Buffer>): Promise<void>;
  progress(bytesRead: number, bytesInTotal: number): void;
};

/** Reads a backup and checks every byte of it: rejects if a byte differs from the written ones. */
export async function readArchive(path: string, signal: AbortSignal, sink: ArchiveSink): Promise<void> {
  const file = await open(path, "r");
  try {
    await readFrom(file, signal, sink);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (/^(ZSTD_|Z_|ERR_ZLIB|ERR_.*ZSTD)/.test(code) || code === "ERR_STREAM_PREMATURE_CLOSE")
      throw new BackupError(`${path} is damaged or incomplete, or is not a backup made by vx`);
    throw error;
  } finally {
    await file.close();
  }
}

async function readFrom(file: FileHandle, signal: AbortSignal, sink: ArchiveSink): Promise<void> {
  const { size } = await file.stat();
  const compressed = Readable.from(chunksOf(file, (bytesRead) => sink.progress(bytesRead, size)));
  const plain = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  // Errors of the file and an abort end the decompressed stream, which is the one that is read.
  compressed.on("error", (error) => plain.destroy(error));
  // Nothing reads an error after the end of the data.
  plain.on("error", () => undefined);
  const abort = () => plain.destroy(signal.reason as Error);
  signal.addEventListener("abort", abort);
  try {
    signal.throwIfAborted();
    await readEntries(new Bytes(compressed.pipe(plain)), sink);
    await requireNoContent(file, plain.bytesWritten, size);
  } finally {
    signal.removeEventListener("abort", abort);
    compressed.destroy();
    plain.destroy();
  }
}

/** The decompressor stops after the first frame and ignores what follows. */
async function requireNoContent(file: FileHandle, position: number, end: number): Promise<void> {
  if (position === end) return;
  const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(EMPTY_FRAME.length), position });
  if (end - position !== bytesRead || !buffer.equals(EMPTY_FRAME)) throw new BackupError("the backup has content after its end");
}

async function* chunksOf(file: FileHandle, onRead: (bytesRead: number) => void): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(CHUNK_BYTES), position });
    if (bytesRead === 0) return;
    position += bytesRead;
    onRead(position);
    yield buffer.subarray(0, bytesRead);
  }
}

async function readEntries(bytes: Bytes, sink: ArchiveSink): Promise<void> {
  const records = new Map<string, FileRecord>();
  const first = await nextHeader(bytes);
  if (first?.name !== DESCRIPTION) throw new BackupError("this is not a backup made by vx");
  await sink.description(parseDescription(await readText(bytes, first, MAX_DESCRIPTION_BYTES, records)));
  for (;;) {
    const header = await nextHeader(bytes);
    if (header === undefined) throw new BackupError("the backup is incomplete: its manifest is missing");
    if (header.name === MANIFEST) {
      checkManifest(await readText(bytes, header, MAX_MANIFEST_BYTES, new Map()), records);
      await requireEnd(bytes);
      return;
    }
    const path = clusterPathOf(header.name);
    if (records.has(header.name) || records.size === MAX_FILES)
      throw new BackupError(`the backup has too many files, or ${header.name} twice`);
    const digest = createHash("sha256");
    await sink.file(path, hashed(bytes.next(header.bytes), digest));
    await bytes.skip(paddingOf(header.bytes));
    records.set(header.name, { bytes: header.bytes, sha256: digest.digest("hex") });
  }
}

async function nextHeader(bytes: Bytes): Promise<TarHeader | undefined> {
  return readHeader(await bytes.all(BLOCK_BYTES));
}

async function readText(
  bytes: Bytes,
  { name, bytes: size }: TarHeader,
  maxBytes: number,
  records: Map<string, FileRecord>,
): Promise<string> {
  if (size > maxBytes) throw new BackupError(`the backup is damaged: ${name} has ${size} bytes`);
  const content = await bytes.all(size);
  await bytes.skip(paddingOf(size));
  const sha256 = createHash("sha256").update(content).digest("hex");
  records.set(name, { bytes: size, sha256 });
  return content.toString();
}

async function requireEnd(bytes: Bytes): Promise<void> {
  const blocks = [await nextHeader(bytes), await nextHeader(bytes)];
  if (blocks.some((block) => block !== undefined) || !(await bytes.isAtEnd()))
    throw new BackupError("the backup has content after its manifest");
}

async function* hashed(content: AsyncIterable<Buffer>, digest: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    digest.update(chunk);
    yield chunk;
  }
}

/** Reads a stream in pieces of given sizes. */
class Bytes {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  async *next(bytes: number): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0; ) {
      if (this.#rest.length === 0 && !(await this.#read())) throw new BackupError("the backup ends too early");
      const part = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
      yield part;
    }
  }

  async all(bytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.next(bytes)) parts.push(part);
    return Buffer.concat(parts);
  }

  async skip(bytes: number): Promise<void> {
    for await (const _ of this.next(bytes));
  }

  async isAtEnd(): Promise<boolean> {
    return this.#rest.length === 0 && !(await this.#read());
  }

  async #read(): Promise<boolean> {
    const { done, value } = await this.#chunks.next();
    if (done) return false;
    this.#rest = value;
    return true;
  }
}
