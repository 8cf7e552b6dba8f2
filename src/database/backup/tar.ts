import { BackupError } from "./backup-format.ts";

/**
 * The part of the POSIX tar format (ustar) that backups use: regular files with short names. A reader of extended headers
 * would accept names and sizes from the archive that nothing bounds.
 */
export const BLOCK_BYTES = 512;
/** Two empty blocks end an archive. */
export const END_BYTES = 2 * BLOCK_BYTES;
const MAX_NAME_BYTES = 100;
/** The size is eleven octal digits. */
const MAX_FILE_BYTES = 0o77777777777;

const NAME = [0, 100] as const;
const MODE = [100, 108] as const;
const UID = [108, 116] as const;
const GID = [116, 124] as const;
const SIZE = [124, 136] as const;
const TIME = [136, 148] as const;
const CHECKSUM = [148, 156] as const;
const TYPE = [156, 157] as const;
const MAGIC = [257, 265] as const;
const USTAR = "ustar\u000000";

export type TarHeader = { readonly name: string; readonly bytes: number };

export function writeHeader({ name, bytes }: TarHeader): Buffer {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES || bytes > MAX_FILE_BYTES)
    throw new BackupError(`the file ${name} of ${bytes} bytes does not fit the format of backups`);
  const header = Buffer.alloc(BLOCK_BYTES);
  const put = ([start]: readonly [number, number], text: string) => header.write(text, start);
  put(NAME, name);
  put(MODE, "0000600\0");
  put(UID, "0000000\0");
  put(GID, "0000000\0");
  put(SIZE, `${bytes.toString(8).padStart(11, "0")}\0`);
  put(TIME, "00000000000\0");
  put(TYPE, "0");
  put(MAGIC, USTAR);
  put(CHECKSUM, `${checksumOf(header).toString(8).padStart(6, "0")}\0 `);
  return header;
}

/** Undefined for an empty block, which ends the archive. */
export function readHeader(header: Buffer): TarHeader | undefined {
  if (header.every((byte) => byte === 0)) return undefined;
  const text = ([start, end]: readonly [number, number]) => header.toString("latin1", start, end);
  const number = (range: readonly [number, number]) => Number.parseInt(text(range), 8);
  const isValid = text(MAGIC) === USTAR && text(TYPE) === "0" && number(CHECKSUM) === checksumOf(header) && number(SIZE) >= 0;
  if (!isValid) throw new BackupError("a file header is damaged, or this is not a backup made by vx");
  return { name: text(NAME).replace(/\0.*$/s, ""), bytes: number(SIZE) };
}

/** The empty bytes that fill the last block of a file. */
export function paddingOf(bytes: number): number {
  return (BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** The sum of the bytes, with spaces in place of the checksum itself. */
function checksumOf(header: Buffer): number {
  const [start, end] = CHECKSUM;
  return header.reduce((sum, byte, i) => sum + (i >= start && i < end ? 0x20 : byte), 0);
}
