import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import type { PricedLedger } from "../../../gen/sql/calls.ts";
import { jsonIfValid } from "../../domain/json.ts";
import { type ArchivedHead, ArchiveError } from "./archive-database.ts";

const ENTRIES_PER_REPORT = 1_000;

export type VerifiedEntries = {
  readonly sha256: string;
  readonly bytes: number;
  readonly entries: number;
  readonly accounts: number;
  readonly totals: Totals;
};

class Totals {
  first_created_at: string | null = null;
  last_created_at: string | null = null;
  readonly kinds: Record<LedgerLine["kind"], { entries: number; amount_micros: number }> = {
    generation: { entries: 0, amount_micros: 0 },
    credit: { entries: 0, amount_micros: 0 },
    topup: { entries: 0, amount_micros: 0 },
    refund: { entries: 0, amount_micros: 0 },
    adjustment: { entries: 0, amount_micros: 0 },
    expiry: { entries: 0, amount_micros: 0 },
  };

  include({ kind, amount_micros, created_at }: LedgerLine): void {
    const total = this.kinds[kind];
    total.entries++;
    total.amount_micros += amount_micros;
    if (this.first_created_at === null || created_at < this.first_created_at) this.first_created_at = created_at;
    if (this.last_created_at === null || created_at > this.last_created_at) this.last_created_at = created_at;
  }
}

/** One account at a time, so memory use does not grow with the file. */
type Chain = { seq: number; balanceMicros: number; hash: string };

/**
 * Reads a file and checks that it has exactly the entries of these accounts: numbers without gaps, balances, and the chain of
 * hashes from the last entry before the file to the last one in it.
 */
export async function verifyEntries(
  path: string,
  heads: AsyncIterable<ArchivedHead>,
  onRead: (entries: number) => void,
): Promise<VerifiedEntries> {
  onRead(0);
  const digest = createHash("sha256");
  let bytes = 0;
  let [entries, accounts] = [0, 0];
  const totals = new Totals();
  const file = createReadStream(path);
  file.on("data", (chunk) => {
    digest.update(chunk);
    bytes += chunk.length;
  });
  const decompressed = file.pipe(createZstdDecompress());
  file.on("error", (error) => decompressed.destroy(error));
  // Thrown to the reader of the lines; without a listener, one after the last line would end the process.
  decompressed.on("error", () => undefined);
  const lines = linesOf(decompressed);
  try {
    for await (const head of heads) {
      accounts++;
      const chain: Chain = { ...head.before };
      while (chain.seq < head.last.seq) {
        const { value, done } = await lines.next();
        if (done) throw new ArchiveError(`the entries of ${head.accountId} are missing`);
        const line = parse(value);
        continueChain(chain, head, line);
        entries++;
        if (entries % ENTRIES_PER_REPORT === 0) onRead(entries);
        totals.include(line);
      }
      if (chain.hash !== head.last.hash || chain.balanceMicros !== head.last.balanceMicros)
        throw new ArchiveError(`the last entry of ${head.accountId} is not that of the database`);
    }
    if (!(await lines.next()).done) throw new ArchiveError("the file has more entries than were archived");
  } catch (error) {
    if (error instanceof ArchiveError) throw new ArchiveError(`${path}: ${error.message}`);
    throw new ArchiveError(`${path} cannot be read: ${(error as Error).message}`);
  } finally {
    file.destroy();
    decompressed.destroy();
  }
  return { sha256: digest.digest("hex"), bytes, entries, accounts, totals };
}

/** An entry has at most some kilobytes. */
const MAX_LINE_CHARACTERS = 1_048_576;

/** An interface of node:readline would wait forever after an error of its input. */
async function* linesOf(stream: Readable): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE_CHARACTERS) throw new ArchiveError("a line is too long");
    yield* lines;
  }
  if (rest !== "") yield rest;
}

function parse(text: string): LedgerLine {
  const line = jsonIfValid(text);
  if (line === undefined) throw new ArchiveError("a line is not JSON");
  return line as LedgerLine;
}

function continueChain(chain: Chain, { lane, accountId }: ArchivedHead, line: LedgerLine): void {
  if (line.lane !== lane || line.account_id !== accountId || line.seq !== chain.seq + 1) {
    throw new ArchiveError(
      `entry ${chain.seq + 1} of ${accountId} is expected, there is entry ${line.seq} of ${line.account_id}`,
    );
  }
  chain.seq = line.seq;
  chain.balanceMicros += line.amount_micros;
  if (line.balance_after_micros !== chain.balanceMicros)
    throw new ArchiveError(`entry ${line.seq} of ${accountId} has a wrong balance`);
  chain.hash = ledgerHash(chain.hash, line);
  if (line.hash !== chain.hash)
    throw new ArchiveError(`the hash of entry ${line.seq} of ${accountId} does not match it and the entries before`);
}

/** A ledger row as the archives have it. */
export type LedgerLine = {
  readonly lane: number;
  readonly account_id: string;
  readonly seq: number;
  readonly id: string;
  readonly month: number;
  readonly kind: PricedLedger["kind"];
  readonly amount_micros: number;
  readonly balance_after_micros: number;
  readonly reason: string;
  readonly request_id: string;
  readonly key_id: string;
  readonly model: string;
  readonly price_version: number;
  readonly input: number;
  readonly cached_input: number;
  readonly cache_write: number;
  readonly output: number;
  readonly reasoning: number;
  readonly images: number;
  readonly image_tokens: number;
  readonly user_id: string;
  readonly trace_id: string;
  /** In UTC, with microseconds: 2030-01-31T14:59:00.123456Z. */
  readonly created_at: string;
  readonly hash_version: number;
  /** In hexadecimal, like all hashes of an archive. */
  readonly hash: string;
  readonly cache_write_1h: number;
  readonly price_tier: number;
  readonly price_list_version: number;
  readonly upstream: string;
  readonly upstream_cost_micros: number | null;
  readonly adjusted_id: string;
};

/**
 * The hash that a row must have after a row with the hash `before`: what the SQL function ledger_hash computes. It is here too,
 * so that archives can be verified by a program that does not trust the database.
 */
export function ledgerHash(before: string, line: LedgerLine): string {
  const { account_id, id, reason, request_id, key_id, model, user_id, trace_id, upstream, adjusted_id } = line;
  const fields = [
    line.hash_version,
    line.seq,
    line.month,
    line.kind,
    line.amount_micros,
    line.balance_after_micros,
    line.price_version,
    line.input,
    line.cached_input,
    line.cache_write,
    line.output,
    line.reasoning,
    line.images,
    line.image_tokens,
    microsOf(line.created_at),
    line.cache_write_1h,
    line.price_tier,
    line.price_list_version,
    line.upstream_cost_micros ?? "-",
    ...[account_id, id, reason, request_id, key_id, model, user_id, trace_id, upstream, adjusted_id].flatMap((text) => [
      Buffer.byteLength(text),
      text,
    ]),
  ];
  return createHash("sha256").update(Buffer.from(before, "hex")).update(fields.join(":")).digest("hex");
}

function microsOf(time: string): bigint {
  const seconds = Date.parse(`${time.slice(0, 19)}Z`) / 1000;
  return BigInt(seconds) * 1_000_000n + BigInt(time.slice(20, 26));
}
