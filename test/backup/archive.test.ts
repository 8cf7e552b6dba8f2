import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { BackupError, CELL, DESCRIPTION, describe, MANIFEST } from "../../src/database/backup/backup-format.ts";
import { ArchiveContent, walSegments } from "../../src/database/backup/create-backup.ts";
import { readArchive } from "../../src/database/backup/restore-backup.ts";
import { paddingOf, writeHeader } from "../../src/database/backup/tar.ts";
import { started } from "../support/started.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const DESCRIBED = describe({
  release: "0.1.0",
  postgresql_major: "18",
  created_at: "2030-01-31T00:00:00.000Z",
  database_bytes: 7,
});

const folder = started(() => createTemporaryFolder("archive"));

/** What the reader passed on; `paths` must stay empty for an archive that names a file outside. */
async function readBytes(compressed: Buffer): Promise<{ paths: string[]; error: unknown }> {
  const path = join(folder.path, "backup.tar.zst");
  writeFileSync(path, compressed);
  const paths: string[] = [];
  const error = await readArchive(path, new AbortController().signal, {
    description: () => undefined,
    file: async (name, content) => {
      for await (const _ of content);
      paths.push(name);
    },
    progress: () => undefined,
  }).catch((reason: unknown) => reason);
  return { paths, error };
}

function archiveOf(files: Readonly<Record<string, string>>, description = DESCRIBED): Buffer {
  const content = new ArchiveContent();
  const parts = [...content.text(DESCRIPTION, description)];
  for (const [name, text] of Object.entries(files)) parts.push(...content.text(name, text));
  return Buffer.concat([...parts, ...content.end()]);
}

const whole = archiveOf({ [`${CELL}PG_VERSION`]: "18\n", [`${CELL}base/1/empty`]: "", [`${CELL}a`]: "x".repeat(600) });

test("a backup is read back as it was written", async () => {
  expect(await readBytes(zstdCompressSync(whole))).toEqual({ paths: ["PG_VERSION", "base/1/empty", "a"], error: undefined });
});

test("a backup that was cut off anywhere is refused", async () => {
  const compressed = zstdCompressSync(whole);
  for (const cut of [0, 1, 10, compressed.length - 1]) {
    expect((await readBytes(compressed.subarray(0, cut))).error, `compressed, ${cut}`).toBeInstanceOf(BackupError);
  }
  for (let end = 0; end < whole.length - 1; end += 256) {
    const { error } = await readBytes(zstdCompressSync(whole.subarray(0, end)));
    expect(error, `${end} bytes`).toBeInstanceOf(BackupError);
  }
});

test("a backup that lacks a part of its checksum, or is followed by other bytes, is refused", async () => {
  const params = { [constants.ZSTD_c_checksumFlag]: 1 };
  // More than one chunk of the reader.
  const large = archiveOf({ [`${CELL}a`]: "x".repeat(5_000_000) });
  for (const content of [whole, large]) {
    const frame = zstdCompressSync(content, { params });
    // Node's stream may add an empty frame.
    const compressed = Buffer.concat([frame, zstdCompressSync("", { params })]);
    expect((await readBytes(frame)).error).toBeUndefined();
    expect((await readBytes(compressed)).error).toBeUndefined();
    const damaged = {
      "without the last byte of its data": frame.subarray(0, -1),
      "without the last byte": compressed.subarray(0, -1),
      "with other bytes after it": Buffer.concat([compressed, Buffer.from("junk")]),
      "with another frame after it": Buffer.concat([frame, zstdCompressSync(Buffer.alloc(1024))]),
    };
    for (const [how, bytes] of Object.entries(damaged)) {
      expect((await readBytes(bytes)).error, how).toBeInstanceOf(BackupError);
    }
  }
});

test("a backup with a changed byte is refused", async () => {
  const content = whole.indexOf("xxx");
  const manifest = whole.indexOf('{"files"');
  for (const place of [0, 3, 130, content, content + 599, manifest + 12, manifest + 60, whole.length - 600]) {
    const changed = Buffer.from(whole);
    changed[place] = (changed[place] as number) ^ 1;
    const { error } = await readBytes(zstdCompressSync(changed));
    expect(error, `byte ${place}`).toBeInstanceOf(BackupError);
  }
});

test.each([
  "/etc/passwd",
  "../../outside",
  `${CELL}../../../outside`,
  `${CELL}base/../../outside`,
  `${CELL}/absolute`,
  `${CELL}.`,
  `${CELL}a\\b`,
  "cells/other/postgres/PG_VERSION",
  DESCRIPTION,
])("a backup with a file named %s is refused before that file is written", async (name) => {
  const { paths, error } = await readBytes(zstdCompressSync(archiveOf({ [name]: "x" })));
  expect(error).toBeInstanceOf(BackupError);
  expect(paths).toEqual([]);
});

test("links, duplicates, files after the manifest and other formats are refused", async () => {
  const link = Buffer.from(whole);
  const at = link.indexOf(`${CELL}PG_VERSION`);
  link[at + 156] = "2".charCodeAt(0);
  const name = `${CELL}twice`;
  const extra = Buffer.concat([writeHeader({ name, bytes: 1 }), Buffer.from("x"), Buffer.alloc(paddingOf(1))]);
  const endless = writeHeader({ name: MANIFEST, bytes: 8_000_000_000 });
  const cases = {
    link,
    duplicate: Buffer.concat([whole.subarray(0, 1024), extra, extra, whole.subarray(1024)]),
    unlisted: Buffer.concat([whole.subarray(0, 1024), extra, whole.subarray(1024)]),
    afterwards: Buffer.concat([whole.subarray(0, -1024), extra, Buffer.alloc(1024)]),
    "large manifest": Buffer.concat([whole.subarray(0, 1024), endless, Buffer.alloc(4096)]),
    "another format": archiveOf({}, DESCRIBED.replace('"format":1', '"format":2')),
    "no description": archiveOf({}).subarray(1024),
  };
  for (const [what, bytes] of Object.entries(cases)) {
    expect((await readBytes(zstdCompressSync(bytes))).error, what).toBeInstanceOf(BackupError);
  }
  expect((await readBytes(Buffer.from("not an archive"))).error).toBeInstanceOf(BackupError);
});

test("the segments of the write-ahead log from the first file to the end position are named as PostgreSQL does", () => {
  const segmentBytes = 16 * 1024 * 1024;
  const from = (firstFile: string, stop: string) => walSegments({ firstFile, stop, segmentBytes });
  expect(from("000000010000000000000002", "0/2000120")).toEqual(["000000010000000000000002"]);
  expect(from("000000010000000000000002", "0/3000000")).toEqual(["000000010000000000000002"]);
  expect(from("0000000200000000000000FE", "1/1000001")).toEqual([
    "0000000200000000000000FE",
    "0000000200000000000000FF",
    "000000020000000100000000",
    "000000020000000100000001",
  ]);
});
