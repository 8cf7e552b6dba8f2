import * as sql from "../../gen/sql/calls.ts";
import { lanesInUse, namedCell } from "../database/cells/named-cell.ts";
import type { Cells, FunctionCaller, ReadCells } from "../database/driver/cells.ts";
import { LANE_COUNT, type Lane, laneRanges, lanesOfText } from "../domain/lane.ts";
import type { Quarter } from "../domain/periods.ts";
import { currentQuarter, currentTimeMs } from "../usage/sums.ts";

export type AuditFinding = sql.AuditPricesRow;

export type AuditReport = {
  /** By the clock of the first cell, in whole seconds. */
  startedAt: Date;
  accounts: bigint;
  entries: bigint;
  keys: bigint;
  balanceMicros: bigint;
  operatorEvents: bigint;
  findings: AuditFinding[];
};

const MAX_FINDINGS = 1_000;
/** Each piece takes a fraction of a second, far below the statement timeout. */
const PIECE_ROWS = 5_000;

/** Start of the next piece of a lane, and the running totals of the account at that point. */
type Position = {
  next_account_id: string;
  next_seq: bigint;
  next_rows: bigint;
  next_sum: string;
  next_hash: Buffer;
};

const START: Position = {
  next_account_id: "",
  next_seq: 0n,
  next_rows: 0n,
  next_sum: "0",
  next_hash: Buffer.alloc(0),
};

/** How far an audit is. Its parts are, of each cell, the lanes in use, the prices and the operator log. */
export type AuditProgress = { readonly partsDone: number; readonly parts: number; readonly entries: bigint };

export async function audit(database: Cells, signal: AbortSignal, pieceRows = PIECE_ROWS): Promise<AuditReport> {
  const steps = auditInSteps(database, signal, pieceRows);
  for (;;) {
    const step = await steps.next();
    if (step.done) return step.value.report;
  }
}

/**
 * Recomputes the ledger and the usage cell by cell, lane by lane and piece by piece, so that every statement is short, and the
 * prices and the operator log of each cell.
 */
export async function* auditInSteps(
  database: ReadCells,
  signal: AbortSignal,
  pieceRows = PIECE_ROWS,
): AsyncGenerator<AuditProgress, { readonly parts: number; readonly report: AuditReport }> {
  const report: AuditReport = {
    startedAt: new Date(await currentTimeMs(namedCell(database, 0))),
    accounts: 0n,
    entries: 0n,
    keys: 0n,
    balanceMicros: 0n,
    operatorEvents: 0n,
    findings: [],
  };
  const unowned = await unownedLanes(database);
  const inUse = await lanesInUse(database);
  const lanesOfCells = inUse.map((lanes, cell) => lanes.filter((lane) => database.owns(cell, lane)));
  const parts = lanesOfCells.flat().length + PARTS_BESIDE_LANES * lanesOfCells.length;
  let partsDone = 0;
  for (const [i, lanes] of lanesOfCells.entries()) {
    const cell = namedCell(database, i);
    for await (const ofCell of auditCell(cell, lanes, pieceRows, report)) {
      signal.throwIfAborted();
      yield { partsDone: partsDone + ofCell, parts, entries: report.entries };
    }
    partsDone += lanes.length + PARTS_BESIDE_LANES;
  }
  if (unowned.length > 0) {
    // A split that moves lanes leaves them without an owner for a moment.
    const still = new Set(await unownedLanes(database));
    const lanes = unowned.filter((lane) => still.has(lane));
    const detail = `no cell owns the lanes ${laneRanges(lanes)}: calls of their accounts are refused`;
    if (lanes.length > 0) report.findings.push({ account_id: "", rule: "lane_has_owner", detail });
  }
  return { parts, report };
}

/** The last complete audit that a server ran, and when a scheduled one last began: null before the first. */
export type LastAudit = sql.LastAuditRow;

export async function lastAudit({ home }: Cells): Promise<LastAudit | undefined> {
  return (await sql.lastAudit(home))[0];
}

export async function recordAudit({ home }: Cells, report: AuditReport): Promise<void> {
  const { startedAt, entries, findings } = report;
  await sql.recordAudit(home, { startedAt, entries, findings: findings.length });
}

/** Whether this server runs the next scheduled audit. */
export async function claimAudit({ home }: Cells, hours: number): Promise<boolean> {
  return (await sql.claimAudit(home, { hours }))[0]?.is_due === true;
}

async function unownedLanes(database: ReadCells): Promise<Lane[]> {
  const states = await Promise.all(database.all.map((_, cell) => sql.cellState(namedCell(database, cell))));
  const owned = new Set(states.flatMap(([state]) => lanesOfText(state?.lanes ?? "")));
  return Array.from(Array(LANE_COUNT).keys()).filter((lane) => !owned.has(lane));
}

/** The prices and the operator log of a cell. */
const PARTS_BESIDE_LANES = 2;

/** Yields the number of parts that are done before each piece. */
async function* auditCell(
  cell: FunctionCaller,
  lanes: readonly Lane[],
  pieceRows: number,
  report: AuditReport,
): AsyncGenerator<number, void> {
  for (const [partsDone, lane] of lanes.entries()) {
    let position: Position | undefined = START;
    while (position) {
      yield partsDone;
      position = await auditPiece(cell, lane, position, pieceRows, report);
    }
    let usage: UsagePosition | undefined = FIRST_USAGE;
    while (usage) {
      yield partsDone;
      usage = await auditUsage(cell, lane, usage, pieceRows, report);
    }
    let archived: ArchivedUsagePosition | undefined = FIRST_ARCHIVED_USAGE;
    while (archived) {
      yield partsDone;
      archived = await auditArchivedUsage(cell, lane, archived, pieceRows, report);
    }
    for (const auditAccounts of [sql.auditLimits, sql.auditGrants]) {
      let account: string | undefined = "";
      while (account !== undefined) {
        yield partsDone;
        account = await nextAccount(report, auditAccounts, cell, lane, account);
      }
    }
  }
  report.findings.push(...(await sql.auditPrices(cell, { maxFindings: MAX_FINDINGS - report.findings.length })));
  let event: EventPosition | undefined = FIRST_EVENT;
  while (event) {
    yield lanes.length + 1;
    event = await auditEvents(cell, event, pieceRows, report);
  }
}

/** The entry after which the next piece of the usage of a lane starts, and the fingerprint of its account up to there. */
type EntryPosition = { next_account_id: string; next_seq: bigint; next_sum: string };

/**
 * An account with many entries has many sums, so these are read in pieces too, before its remaining entries. Sums before
 * `quarter` no longer change.
 */
type UsagePosition = EntryPosition & {
  readonly quarter: Quarter;
  /** The fingerprint of the sums that were read. */
  readonly stored: bigint;
  /** The position of the next sums; undefined when all were read. */
  readonly nextSums: string | undefined;
};

const FIRST_USAGE: UsagePosition = {
  next_account_id: "",
  next_seq: 0n,
  next_sum: "0",
  quarter: 0,
  stored: 0n,
  nextSums: undefined,
};

/** A settlement adds to the current quarter; an hour allows for corrections of the clock. */
const UNCHANGED_AFTER_QUARTERS = 4;
/** Sums are read faster than entries. */
const SUMS_PER_ENTRY = 10;

async function auditUsage(
  cell: FunctionCaller,
  lane: number,
  at: UsagePosition,
  pieceRows: number,
  report: AuditReport,
): Promise<UsagePosition | undefined> {
  const { next_account_id: accountId, quarter, stored, nextSums } = at;
  if (nextSums !== undefined) {
    const size = pieceRows * SUMS_PER_ENTRY;
    const [sums] = await sql.storedUsage(cell, { lane, accountId, end: quarter, position: nextSums, limit: size });
    return { ...at, stored: stored + BigInt(sums?.fingerprint ?? 0), nextSums: sums?.next ?? undefined };
  }
  const range = { lane, accountId, seq: at.next_seq, sum: at.next_sum, stored: stored.toString(), quarter, limit: pieceRows };
  const next = await readPiece(report, (maxFindings) => sql.auditUsage(cell, { ...range, maxFindings }));
  if (next.next_account_id === null) return undefined;
  const { next_account_id, next_seq, next_sum } = next as EntryPosition;
  const position = { next_account_id, next_seq, next_sum };
  if (position.next_account_id === accountId) return { ...at, ...position };
  const unchanged = (await currentQuarter(cell)) - UNCHANGED_AFTER_QUARTERS;
  return { ...position, quarter: unchanged, stored: 0n, nextSums: "" };
}

/** The sum after which the next piece starts, and the fingerprint of its account up to there. */
type ArchivedUsagePosition = { next: string; next_sum: string };

const FIRST_ARCHIVED_USAGE: ArchivedUsagePosition = { next: "", next_sum: "0" };

async function auditArchivedUsage(
  cell: FunctionCaller,
  lane: number,
  at: ArchivedUsagePosition,
  pieceRows: number,
  report: AuditReport,
): Promise<ArchivedUsagePosition | undefined> {
  const range = { lane, position: at.next, sum: at.next_sum, limit: pieceRows * SUMS_PER_ENTRY };
  const next = await readPiece(report, (maxFindings) => sql.auditArchivedUsage(cell, { ...range, maxFindings }));
  return next.next === null ? undefined : (next as ArchivedUsagePosition);
}

/** Accounts per piece: each has few counters, or one for each of its end users. */
const LIMIT_ACCOUNTS = 200;

/** Compares the counters of limits, or the grants, of a lane with the ledger. */
async function nextAccount(
  report: AuditReport,
  auditAccounts: typeof sql.auditLimits | typeof sql.auditGrants,
  cell: FunctionCaller,
  lane: Lane,
  accountId: string,
): Promise<string | undefined> {
  const range = { lane, accountId, limit: LIMIT_ACCOUNTS };
  const next = await readPiece(report, (maxFindings) => auditAccounts(cell, { ...range, maxFindings }));
  return next.next_account_id ?? undefined;
}

/** The event after which the next piece of the operator log starts. */
type EventPosition = { next_lane: number; next_seq: bigint; next_hash: Buffer };

const FIRST_EVENT: EventPosition = { next_lane: 0, next_seq: 0n, next_hash: Buffer.alloc(0) };

async function auditEvents(
  cell: FunctionCaller,
  at: EventPosition,
  pieceRows: number,
  report: AuditReport,
): Promise<EventPosition | undefined> {
  const range = { lane: at.next_lane, seq: at.next_seq, hash: at.next_hash, limit: pieceRows };
  const totals = await readPiece(report, (maxFindings) => sql.auditOperatorEvents(cell, { ...range, maxFindings }));
  report.operatorEvents += totals.events;
  return totals.next_lane === null ? undefined : (totals as EventPosition);
}

async function auditPiece(
  cell: FunctionCaller,
  lane: number,
  at: Position,
  pieceRows: number,
  report: AuditReport,
): Promise<Position | undefined> {
  const account = { accountId: at.next_account_id, seq: at.next_seq, rows: at.next_rows, sum: at.next_sum, hash: at.next_hash };
  const totals = await readPiece(report, (maxFindings) => sql.audit(cell, { lane, ...account, limit: pieceRows, maxFindings }));
  report.accounts += totals.accounts;
  report.entries += totals.entries;
  report.keys += totals.keys;
  report.balanceMicros += BigInt(totals.balance_micros);
  return totals.next_account_id === null ? undefined : (totals as Position);
}

/** Adds the findings of a piece to the report. Returns the first row: the totals and the position of the next piece. */
async function readPiece<Row extends AuditFinding>(
  report: AuditReport,
  read: (maxFindings: number) => Promise<Row[]>,
): Promise<Row> {
  const [first, ...findings] = await read(MAX_FINDINGS - report.findings.length);
  if (!first) throw new Error("a piece of an audit has no totals");
  for (const { account_id, rule, detail } of findings) report.findings.push({ account_id, rule, detail });
  return first;
}
