import { createBrotliDecompress, createGunzip } from "node:zlib";
import { DomainError } from "../domain/errors.ts";
import { nextTurn } from "../domain/fairness.ts";
import type { BodyShare } from "./body-budget.ts";
import { RequestProblem } from "./problem.ts";

/** The body as received, over HTTP/1.1 or HTTP/2. */
export type BodySource = {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Reset by the caller, or cut off, before it was complete. */
  readonly aborted: boolean;
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  /** The whole body has arrived, read or not. */
  readonly complete?: boolean;
  /** HTTP/2 only. */
  readonly stream?: { readonly endAfterHeaders: boolean };
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  /** Every source closes, even after an error. */
  on(event: "end" | "close", listener: () => void): unknown;
  pause(): unknown;
  /** HTTP/1.1 only: the bytes that have arrived and are not read yet. */
  read?(): unknown;
};

/** Limits of one body: its size, its part of the budget, its time. */
export type BodyLimits = {
  readonly maxBytes: number;
  readonly share: Pick<BodyShare, "reserve" | "inTurn">;
  readonly bodyMs: number;
};

/** The caller disconnected before its response was complete. */
export class CallerDisconnected extends Error {}

/** The budget is checked after each chunk of this size. */
const CHUNK = { chunkSize: 65_536 };

const DECODERS = {
  gzip: () => createGunzip(CHUNK),
  br: () => createBrotliDecompress(CHUNK),
};

export const KNOWN_ENCODINGS = Object.keys(DECODERS).join(", ");

/** The bytes of a JSON body, decompressed; empty if there is no body. */
export function readJsonBytes(source: BodySource, limits: BodyLimits): Buffer | Promise<Buffer> {
  const bytes = readBytes(source, limits);
  return bytes instanceof Promise ? bytes.then((body) => plainJson(source, body, limits)) : plainJson(source, bytes, limits);
}

function plainJson({ headers }: BodySource, bytes: Buffer, limits: BodyLimits): Buffer | Promise<Buffer> {
  if (bytes.length === 0) return bytes;
  checkContentType(headers["content-type"]);
  return decompress(bytes, headers["content-encoding"], limits);
}

export function readBytes(source: BodySource, limits: BodyLimits): Buffer | Promise<Buffer> {
  const { maxBytes, share } = limits;
  const announced = Number(source.headers["content-length"] ?? 0);
  if (source.aborted) throw new CallerDisconnected();
  // Node ends an empty body before it is read, and destroys it if the headers announce none.
  if (source.readableEnded) return Buffer.alloc(0);
  // A body that ended while the gate was deciding emits no further event.
  if (source.destroyed) throw new CallerDisconnected();
  // Most small bodies arrive with their head, or while the gate decides. A listener sends "100 Continue".
  if (source.complete && !source.stream && source.read && source.headers.expect === undefined) {
    const bytes = (source.read() as Buffer | null) ?? Buffer.alloc(0);
    share.reserve(bytes.length);
    if (bytes.length > maxBytes) throw tooLarge(maxBytes);
    return bytes;
  }
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const gathered = new GatheredBytes(Math.min(announced, maxBytes));
  let isWanted = true;
  const fail = (error: unknown) => {
    isWanted = false;
    clearTimeout(timer);
    gathered.clear();
    reject(error);
  };
  const stop = (error: unknown) => {
    fail(error);
    // Over HTTP/1.1 the rest is read and discarded: a caller that is cut off while sending never gets the
    // response.
    if (source.stream) source.pause();
  };
  const onTimeout = () => stop(new DomainError("deadline_exceeded", { message: "The request body was not received in time." }));
  const timer = source.complete ? undefined : setTimeout(onTimeout, limits.bodyMs);
  source.on("data", (chunk) => {
    if (!isWanted) {
      if (!source.stream) freeChunk(chunk);
      return;
    }
    try {
      share.reserve(chunk.length);
    } catch (error) {
      stop(error);
      return;
    }
    if (gathered.size + chunk.length > maxBytes) fail(tooLarge(maxBytes));
    // The parser of HTTP/1.1 copies each chunk, so that nothing else refers to it.
    else if (gathered.append(chunk) && !source.stream) freeChunk(chunk);
  });
  // Every request closes eventually: creating an error for one that was already read would cost more than
  // reading it.
  const onDisconnect = () => {
    if (isWanted) fail(new CallerDisconnected());
  };
  source.on("end", () => {
    // An HTTP/2 stream that is reset emits "end" like a complete one.
    if (source.aborted || gathered.size < announced) return onDisconnect();
    isWanted = false;
    clearTimeout(timer);
    resolve(gathered.bytes());
  });
  source.on("close", onDisconnect);
  return promise;
}

function checkContentType(header: string | string[] | undefined): void {
  if (header === "application/json") return;
  const [type, ...parameters] = String(header ?? "")
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice(8)
    .replaceAll('"', "");
  if (type !== "application/json" || (charset !== undefined && charset !== "utf-8" && charset !== "utf8")) {
    throw new RequestProblem("unsupported_media_type", "Send the body as application/json in UTF-8.");
  }
}

export function decompress(bytes: Buffer, header: string | string[] | undefined, limits: BodyLimits): Buffer | Promise<Buffer> {
  if (header === undefined) return bytes;
  const encoding = String(header).trim().toLowerCase();
  return encoding === "identity" || encoding === "" ? bytes : decompressFrom(encoding, bytes, limits);
}

/** A Brotli decoder buffers up to 16 MiB of output that it has not returned yet, so large bodies are decompressed one at a time. */
function decompressFrom(encoding: string, bytes: Buffer, limits: BodyLimits): Promise<Buffer> {
  if (!isKnown(encoding))
    throw new RequestProblem(
      "unsupported_media_type",
      `The content encoding is not supported. Use ${KNOWN_ENCODINGS}, or no compression.`,
    );
  const run = () => decompressWith(encoding, bytes, limits);
  return encoding === "br" ? limits.share.inTurn(run) : run();
}

/** A few kilobytes can decompress to 32 MiB, so each chunk of the output counts against the budget. */
async function decompressWith(encoding: keyof typeof DECODERS, bytes: Buffer, { maxBytes, share }: BodyLimits): Promise<Buffer> {
  const plain = new GatheredBytes(0);
  const chunks: AsyncIterable<Buffer> = DECODERS[encoding]().end(bytes);
  try {
    for await (const chunk of chunks) {
      if (plain.size + chunk.length > maxBytes) throw tooLarge(maxBytes);
      share.reserve(chunk.length);
      if (plain.append(chunk)) freeChunk(chunk);
    }
    // After an error, the decoder may still read them.
    freeBytes(bytes);
  } catch (error) {
    plain.clear();
    if (error instanceof RequestProblem || error instanceof DomainError) throw error;
    throw new RequestProblem("invalid", `The body is not valid ${encoding}.`);
  }
  return plain.bytes();
}

function isKnown(encoding: string): encoding is keyof typeof DECODERS {
  return Object.hasOwn(DECODERS, encoding);
}

function tooLarge(maxBytes: number): RequestProblem {
  return new RequestProblem("too_large", `The request body can have at most ${maxBytes} bytes, before and after decompression.`);
}

/** The capacity of the first block; it doubles when it is full, up to that of the others. */
const FIRST_BYTES = 8_192;
/** Copying this much to new memory takes about a millisecond. */
const BLOCK_BYTES = 1_048_576;

/**
 * The first block grows to the announced length only if that is at most this many times the needed size: anyone can announce
 * 32 MiB and send one byte.
 */
const MAX_ANNOUNCED_FACTOR = 32;

/** A smaller buffer is left to the garbage collector. */
const MIN_FREED_BYTES = 262_144;

/** The memory that was allocated here for large bodies. */
const allocated = new WeakSet<ArrayBufferLike>();

/**
 * Frees the memory of gathered bytes at once, if it is large: V8 collects the whole heap whenever a certain amount of such
 * memory was allocated. Nothing may refer to the bytes afterwards.
 */
export function freeBytes({ buffer }: Buffer): void {
  if (allocated.has(buffer)) (buffer as ArrayBuffer).transfer(0);
}

/** Joins chunks as they arrive: a peer may send them byte by byte. */
export class GatheredBytes {
  /** Blocks without room. A body of unknown length is joined at its end: growing one buffer would copy megabytes at once. */
  #full: Buffer[] = [];
  #last: Buffer | undefined;
  /** The bytes of the last block, or of the only chunk. */
  #used = 0;
  /** A single chunk is returned without a copy. */
  #only: Buffer | undefined;
  #size = 0;
  readonly #expected: number;

  /** Zero if the number of bytes is unknown. */
  constructor(expectedBytes: number) {
    this.#expected = expectedBytes;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns whether the chunk was copied. */
  append(chunk: Buffer): boolean {
    const isFirst = this.#size === 0;
    if (isFirst) this.#only = chunk;
    else {
      if (this.#last === undefined || this.#last.length < this.#used + chunk.length) this.#makeRoom(chunk.length);
      chunk.copy(this.#last as Buffer, this.#used);
    }
    this.#used += chunk.length;
    this.#size += chunk.length;
    return !isFirst;
  }

  bytes(): Buffer | Promise<Buffer> {
    if (this.#full.length > 0) return this.#join();
    return this.#only ?? this.#last?.subarray(0, this.#size) ?? Buffer.alloc(0);
  }

  /** Also frees the memory. */
  clear(): void {
    for (const block of this.#full) freeBytes(block);
    if (this.#last) freeBytes(this.#last);
    this.#full = [];
    this.#last = undefined;
    this.#only = undefined;
    this.#used = 0;
    this.#size = 0;
  }

  #makeRoom(bytes: number): void {
    const needed = this.#used + bytes;
    const isAnnounced = this.#full.length === 0 && this.#expected <= MAX_ANNOUNCED_FACTOR * needed;
    if (this.#last && this.#last.length >= BLOCK_BYTES && !(isAnnounced && this.#expected >= needed)) {
      this.#full.push(this.#last.subarray(0, this.#used));
      this.#last = allocate(Math.max(bytes, BLOCK_BYTES));
      this.#used = 0;
      return;
    }
    const larger = allocate(Math.max(needed, isAnnounced ? this.#expected : 0, FIRST_BYTES, 2 * this.#used));
    (this.#only ?? this.#last)?.copy(larger, 0, 0, this.#used);
    if (this.#last) freeBytes(this.#last);
    this.#last = larger;
    this.#only = undefined;
  }

  async #join(): Promise<Buffer> {
    const whole = allocate(this.#size);
    let at = 0;
    for (const block of [...this.#full, (this.#last as Buffer).subarray(0, this.#used)]) {
      at += block.copy(whole, at);
      freeBytes(block);
      await nextTurn();
    }
    return whole;
  }
}

function allocate(bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(bytes);
  if (bytes >= MIN_FREED_BYTES) allocated.add(buffer.buffer);
  return buffer;
}

/** A smaller chunk is left to the garbage collector. */
const MIN_FREED_CHUNK_BYTES = 8_192;

/**
 * Frees the memory of a chunk at once, if no other Buffer can share it: V8 collects the whole heap whenever a certain amount
 * of such memory was allocated. Nothing may refer to the bytes afterwards.
 */
export function freeChunk({ buffer, length }: Buffer): void {
  if (length >= MIN_FREED_CHUNK_BYTES && length === buffer.byteLength) (buffer as ArrayBuffer).transfer(0);
}
