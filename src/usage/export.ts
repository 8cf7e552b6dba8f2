import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ExportUsageRequest, ExportUsageResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { accountToRead } from "../accounts/named-account.ts";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { namedCell } from "../database/cells/named-cell.ts";
import { csvLine } from "../domain/csv.ts";
import { DomainError } from "../domain/errors.ts";
import { formatMicros } from "../domain/money.ts";
import { QUARTER_MS, type Quarter } from "../domain/periods.ts";
import { archivedUntil } from "../ledger/store.ts";
import { type ExportRange, type ExportRow, exportLanes, exportMovementsOfLane, exportUsageOfLane } from "./export-rows.ts";
import { EXPORT_COUNTS, FocusDays, type FocusFile, type FocusRow, focusColumns, focusRowOfMovement, timeText } from "./focus.ts";
import { usageRangeOf } from "./request.ts";
import { inclusiveTokensOf, marginOf } from "./views.ts";

/** A part of the file. A piece of usage has the quarter of its last row; a piece of movements has none. */
type Piece = { readonly text: string; readonly rows: number; readonly quarter?: Quarter | undefined };

type Exported = Pick<Deps, "database" | "productName">;

/** The usage as a file, in pieces of some hundred kilobytes. */
export async function* exportUsage(
  deps: Exported,
  request: ExportUsageRequest,
  call: Pick<ApiCall, "signal" | "recheck" | "nameAccount">,
): AsyncGenerator<MessageInitShape<typeof ExportUsageResponseSchema>, void> {
  const accountId = request.accountId === "" ? "" : (await accountToRead(deps, call, request.accountId)).id;
  const range = { accountId, ...(await usageRangeOf(deps.database.home, request)) };
  if (request.format === "focus") await refuseArchivedMovements(deps, range);
  const lanes = await exportLanes(deps.database, range);
  // A single account is in one lane, so its progress counts the quarters of the range.
  const parts = accountId === "" ? lanes.length : range.to - range.from;
  let rows = 0n;
  const isFocus = request.format === "focus";
  const costs = request.includeCosts;
  const file = {
    productName: deps.productName,
    version: request.focusVersion === "1.3" ? ("1.3" as const) : ("1.2" as const),
    costs,
  };
  yield { text: csvLine(isFocus ? focusColumns(file) : Object.keys(csvColumns(costs))) };
  for (const [lanesDone, lane] of lanes.entries()) {
    const pieces = isFocus ? focusPieces(deps, lane, range, file) : csvPieces(deps, lane, range, costs);
    for await (const piece of pieces) {
      call.signal.throwIfAborted();
      await call.recheck();
      rows += BigInt(piece.rows);
      const done = accountId === "" ? lanesDone : (piece.quarter ?? range.to) - range.from;
      yield { text: piece.text, rows, lanesDone: done, lanes: parts };
    }
  }
  // Without this, credits that were archived meanwhile would be missing.
  if (request.format === "focus") await refuseArchivedMovements(deps, range);
  yield { rows, lanesDone: parts, lanes: parts };
}

/** The sums of the usage are never archived. */
async function refuseArchivedMovements({ database }: Exported, { from }: ExportRange): Promise<void> {
  for (const i of database.all.keys()) {
    const until = await archivedUntil(namedCell(database, i));
    if (until === undefined || from * QUARTER_MS >= until.getTime()) continue;
    throw DomainError.ofField(
      "from",
      `credits and adjustments before ${until.toISOString()} are archived; begin there, or export the usage alone as csv`,
    );
  }
}

const CSV_COLUMNS: Readonly<Record<string, (row: ExportRow) => unknown>> = {
  start: ({ quarter }) => timeText(new Date(quarter * QUARTER_MS)),
  account_id: (row) => row.account_id,
  key_id: (row) => row.key_id,
  model: (row) => row.model,
  user: (row) => row.user_name,
  price_version: (row) => row.price_version,
  price_tier: (row) => row.price_tier,
  price_list_version: (row) => row.price_list_version,
  requests: (row) => row.requests,
  input_tokens: (row) => inclusiveTokensOf(row).input,
  cached_input_tokens: (row) => row.cached_input,
  cache_write_tokens: (row) => row.cache_write,
  cache_write_1h_tokens: (row) => row.cache_write_1h,
  output_tokens: (row) => inclusiveTokensOf(row).output,
  reasoning_tokens: (row) => row.reasoning,
  image_tokens: (row) => row.image_tokens,
  images: (row) => row.images,
  cost_micros: (row) => row.cost_micros,
  cost: (row) => formatMicros(row.cost_micros),
};

/** Columns for operators alone, at the end. */
const COST_COLUMNS: typeof CSV_COLUMNS = {
  upstream: (row) => row.upstream,
  upstream_cost_micros: (row) => row.upstream_cost_micros,
  uncosted_micros: (row) => row.uncosted_micros,
  margin_micros: (row) => marginOf(row),
};

function csvColumns(costs: boolean): typeof CSV_COLUMNS {
  return costs ? { ...CSV_COLUMNS, ...COST_COLUMNS } : CSV_COLUMNS;
}

async function* csvPieces({ database }: Exported, lane: number, range: ExportRange, costs: boolean): AsyncGenerator<Piece> {
  const values = Object.values(csvColumns(costs));
  const pieces = exportUsageOfLane(database, lane, range);
  for await (const rows of costs ? pieces : withoutUpstreams(pieces)) {
    const lines = rows.map((row) => csvLine(values.map((value) => String(value(row)))));
    yield { text: lines.join(""), rows: rows.length, quarter: rows.at(-1)?.quarter };
  }
}

/** Adds up rows that differ only in their upstream, which are next to each other: their number would show how many there are. */
async function* withoutUpstreams(pieces: AsyncIterable<ExportRow[]>): AsyncGenerator<ExportRow[]> {
  let last: ExportRow | undefined;
  for await (const rows of pieces) {
    const sums: ExportRow[] = [];
    for (const row of rows) {
      if (last && isSameSum(last, row)) for (const count of EXPORT_COUNTS) last[count] += row[count];
      else {
        if (last) sums.push(last);
        last = row;
      }
    }
    yield sums;
  }
  if (last) yield [last];
}

const SUM_KEYS = [
  "account_id",
  "quarter",
  "key_id",
  "model",
  "user_id",
  "price_version",
  "price_tier",
  "price_list_version",
] as const satisfies (keyof ExportRow)[];

function isSameSum(one: ExportRow, other: ExportRow): boolean {
  return SUM_KEYS.every((name) => one[name] === other[name]);
}

async function* focusPieces({ database }: Exported, lane: number, range: ExportRange, file: FocusFile): AsyncGenerator<Piece> {
  const days = new FocusDays(file);
  const columns = focusColumns(file);
  const focusPiece = (rows: readonly FocusRow[]) => {
    const text = rows.map((row) => csvLine(columns.map((name) => row[name]))).join("");
    return { text, rows: rows.length };
  };
  for await (const rows of exportUsageOfLane(database, lane, range)) {
    yield { ...focusPiece(rows.flatMap((row) => days.collect(row))), quarter: rows.at(-1)?.quarter };
  }
  yield focusPiece(days.finish());
  for await (const rows of exportMovementsOfLane(database, lane, range)) {
    yield focusPiece(rows.map((row) => focusRowOfMovement(row, file)));
  }
}
