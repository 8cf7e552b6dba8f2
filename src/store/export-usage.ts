import { laneOfId } from "../domain/lane.ts";
import { QUARTER_MS, type Quarter } from "../domain/periods.ts";
import type { Cells } from "./driver/cells.ts";
import type { EntryPrices } from "./ledger.ts";
import { allLanesInUse } from "./named-cell.ts";
import type { UsageSum } from "./usage-sums.ts";

export type ExportRange = {
  /** Empty for all accounts. */
  readonly accountId: string;
  readonly from: Quarter;
  /** Exclusive. */
  readonly to: Quarter;
};

type MeterOf<Price> = Price extends `${infer Meter}_price` ? Meter : never;

export type PricedMeter = MeterOf<keyof EntryPrices>;

/** The prices of the model at that time, without a discount and without prices of the account's own. */
type ListPrices = Record<`${PricedMeter}_list_price`, bigint | null>;

/**
 * A stored sum: of one quarter of an hour, price version, tier, version of the account's prices, and upstream. Prices are null if the
 * version is unknown.
 */
export type ExportRow = Omit<UsageSum, "start"> &
  EntryPrices &
  ListPrices & {
    account_name: string;
    quarter: Quarter;
    user_id: string;
    price_version: number;
    cache_write_1h: bigint;
    price_tier: number;
    price_list_version: number;
    /** In hundredths of a percent, of the prices; null for none. */
    discount: number | null;
  };

export type MovementRow = {
  account_id: string;
  account_name: string;
  seq: bigint;
  id: string;
  kind: "credit" | "topup" | "refund" | "adjustment" | "expiry";
  amount_micros: bigint;
  reason: string;
  created_at: Date;
  is_promotional: boolean;
};

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
    rows = await database.at(lane).call<ExportRow>("export_usage", lane, accountId, from, to, position, pieceRows);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last) {
      position = JSON.stringify([
        last.account_id,
        last.quarter,
        last.key_id,
        last.model,
        last.user_id,
        last.price_version,
        last.price_tier,
        last.price_list_version,
        last.upstream,
      ]);
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
    const position = [afterId, seq, pieceRows] as const;
    rows = await database.at(lane).call<MovementRow>("export_movements", lane, accountId, first, end, ...position);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last) [afterId, seq] = [last.account_id, last.seq];
  } while (rows.length === pieceRows);
}
