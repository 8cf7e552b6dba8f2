import { createHash, hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { type FileRecord, MANIFEST, writeManifest } from "./backup-format.ts";
import { ignoreMissing } from "./cluster-files.ts";
import { END_BYTES, paddingOf, writeHeader } from "./tar.ts";

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

  /** The manifest and the end of the archive. */
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
