import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as wait } from "node:timers/promises";
import { constants, createZstdCompress } from "node:zlib";
import { monthText } from "../../domain/periods.ts";
import { keepIfExists, writeNewFile } from "../backup/new-file.ts";
import { RELEASE } from "../schema/release.ts";
import { type Archive, ArchiveDatabase, ArchiveError, type LedgerPlace } from "./archive-database.ts";
import { type VerifiedEntries, verifyEntries } from "./verify-entries.ts";

/** An audit of many archives reads one after the other, with this much memory. */
const WINDOW_LOG = 20;
/** A removal waits until no statement uses the ledger; long reads can make it fail several times. */
const MAX_REMOVALS = 120;
const REMOVAL_PAUSE_MS = 500;

/** Counts entries; in the step "select", lanes. */
export type ArchiveProgress = {
  readonly step: "select" | "write" | "verify" | "remove";
  readonly file: string;
  readonly done: number;
  readonly inTotal: number;
};

type ArchiveOptions = {
  readonly place: LedgerPlace;
  readonly folder: string;
  /** Months from this one on stay in the ledger. */
  readonly before: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: ArchiveProgress) => void;
};

/**
 * Moves old partitions of the ledger to files, oldest first. An entry is removed only after the file that has it was written to
 * disk, read back and verified. After an interruption, the next call continues with the partition that was not removed.
 */
export async function archiveLedger(options: ArchiveOptions): Promise<Archive[]> {
  const database = await ArchiveDatabase.open(options.place);
  try {
    await database.lock();
    await database.moveOtherMonths();
    const archived: Archive[] = [];
    for (const { name, last_month: month } of await database.partitions()) {
      if (month >= options.before) break;
      options.signal.throwIfAborted();
      archived.push(await archivePartition(database, name, month, options));
    }
    return archived;
  } finally {
    await database.close();
  }
}

async function archivePartition(
  database: ArchiveDatabase,
  partition: string,
  month: number,
  options: ArchiveOptions,
): Promise<Archive> {
  const { folder, signal, onProgress } = options;
  const name = partition.replaceAll("_", "-");
  const file = `${name}.jsonl.zst`;
  const path = join(folder, file);
  await database.forgetUnfinished();
  let entries = 0;
  const lanes = await database.lanes();
  for (const [done, lane] of lanes.entries()) {
    signal.throwIfAborted();
    onProgress({ step: "select", file, done, inTotal: lanes.length });
    entries += await database.addHeads(lane, month);
  }
  const report = (step: ArchiveProgress["step"]) => (done: number) => {
    signal.throwIfAborted();
    onProgress({ step, file, done, inTotal: entries });
  };
  // A file of an interrupted call, or of the time before a backup was restored, is used if it has the same entries.
  if (!(await keepIfExists(path))) await writeEntries(path, database.lines(month), report("write"), signal);
  const verified = await verifyEntries(path, database.heads(month), report("verify"));
  if (verified.entries !== entries) throw new ArchiveError(`${path} has ${verified.entries} entries instead of ${entries}`);
  const manifest = join(folder, `${name}.json`);
  if (!(await keepIfExists(manifest))) await writeManifest(manifest, file, month, verified);
  await database.add({ month, file, sha256: verified.sha256, entries });
  report("remove")(entries);
  await remove(database, month, signal);
  const archive = (await database.archives()).find((one) => one.month === month);
  return archive as Archive;
}

async function writeEntries(
  path: string,
  pieces: AsyncIterable<readonly string[]>,
  onWritten: (entries: number) => void,
  signal: AbortSignal,
): Promise<void> {
  await writeNewFile(path, async (file) => {
    let entries = 0;
    const texts = async function* () {
      for await (const lines of pieces) {
        entries += lines.length;
        onWritten(entries);
        yield `${lines.join("\n")}\n`;
      }
    };
    const params = { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_windowLog]: WINDOW_LOG };
    await pipeline(
      Readable.from(texts()),
      createZstdCompress({ params }),
      async (compressed: AsyncIterable<Buffer>) => {
        for await (const chunk of compressed) await file.writeFile(chunk);
      },
      { signal },
    );
  });
}

/** Information for people who look at the file. vx does not read it. */
async function writeManifest(path: string, file: string, month: number, verified: VerifiedEntries): Promise<void> {
  const { totals, ...counts } = verified;
  const manifest = { file, last_month: monthText(month), ...counts, ...totals, release: RELEASE };
  await writeNewFile(path, (handle) => handle.writeFile(`${JSON.stringify(manifest, undefined, 2)}\n`));
}

async function remove(database: ArchiveDatabase, month: number, signal: AbortSignal): Promise<void> {
  for (let attempt = 0; attempt < MAX_REMOVALS; attempt++) {
    if (await database.remove(month)) return;
    await wait(REMOVAL_PAUSE_MS, undefined, { signal });
  }
  throw new ArchiveError(
    "the archived entries could not be removed, because other statements kept using the ledger; run the command again",
  );
}
