import * as sql from "../../gen/sql/calls.ts";
import { allLanesInUse } from "../database/cells/named-cell.ts";
import type { Cells } from "../database/driver/cells.ts";
import { laneOfId } from "../domain/lane.ts";
import { QUARTER_MS, type Quarter } from "../domain/periods.ts";
import type { EntryPrices } from "../ledger/store.ts";

export type ExportRange = {
  /** Empty for all accounts. */
  readonly accountId: string;
  readonly from: Quarter;
  /** Exclusive. */
  readonly to: Quarter;
};

type MeterOf<Price> = Price extends `${infer Meter}_price` ? Meter : never;

export type PricedMeter = MeterOf<keyof EntryPrices>;

/**
 * A stored sum: of one quarter of an hour, price version, tier, version of the account's prices, and upstream. Prices are null
 * if the version is unknown. List prices are those of the model at that time, without a discount or prices of the account. The
 * discount is in hundredths of a percent; null for none.
 */
export type ExportRow = sql.PricedUsage;

export type MovementRow = sql.ExportMovementsRow;

/** The number of rows that a statement reads. */
const PIECE_ROWS = 1_000;

/** The lanes that an export reads. */
export async function exportLanes(database: Cells, { accountId }: ExportRange): Promise<number[]> {
  return accountId === "" ? await allLanesInUse(database) : [laneOfId(accountId)];
}

/** The sums of a lane by account and time, piece by piece. */
export async function* exportUsageOfLane(
  database: Cells,
  lane: number,
  { accountId, from, to }: ExportRange,
  pieceRows = PIECE_ROWS,
): AsyncGenerator<ExportRow[]> {
  let position = "";
  let rows: ExportRow[];
  do {
    rows = await sql.exportUsage(database.at(lane), { lane, accountId, from, end: to, position, limit: pieceRows });
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last) {
      const { account_id, quarter, key_id, model, user_id, price_version, price_tier, price_list_version, upstream } = last;
      position = JSON.stringify({
        account_id,
        quarter,
        key_id,
        model,
        user_id,
        price_version,
        price_tier,
        price_list_version,
        upstream,
      });
    }
  } while (rows.length === pieceRows);
}

/** The credits and adjustments of a lane by account and number, piece by piece. */
export async function* exportMovementsOfLane(
  database: Cells,
  lane: number,
  { accountId, from, to }: ExportRange,
  pieceRows = PIECE_ROWS,
): AsyncGenerator<MovementRow[]> {
  const [first, end] = [new Date(from * QUARTER_MS), new Date(to * QUARTER_MS)];
  let [afterId, seq] = ["", 0n];
  let rows: MovementRow[];
  do {
    const range = { from: first, to: end, afterId, seq, limit: pieceRows };
    rows = await sql.exportMovements(database.at(lane), { lane, accountId, ...range });
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last) [afterId, seq] = [last.account_id, last.seq];
  } while (rows.length === pieceRows);
}
