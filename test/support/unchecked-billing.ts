import { Batcher } from "../../src/database/driver/batcher.ts";
import type { Database } from "../../src/database/driver/database.ts";
import { entryIdOf, monthOfId } from "../../src/domain/ids.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import {
  arrayOfEnds,
  arrayOfHolds,
  type BillItem,
  type BillRow,
  type EndOutcome,
  type EndRequest,
  type HoldRequest,
} from "../../src/generations/bill-statement.ts";
import type { EntryRow } from "../../src/ledger/store.ts";
import { clock } from "./store.ts";

const MINUTE_MS = 60_000;

/**
 * Sends requests to vx.bill that Billing refuses, such as a second charge: the database must enforce its
 * rules without Billing.
 */
export class UncheckedBilling {
  readonly #database: Database;
  readonly #batcher: Batcher<BillItem, BillRow>;

  constructor(database: Database, serverId: string) {
    this.#database = database;
    this.#batcher = new Batcher({
      pipelines: 1,
      maxBatch: 512,
      maxWaiting: 1_000,
      clock,
      execute: async (items) => {
        const lanes = [...new Set(items.map(({ lane }) => lane))];
        const ends = items.filter((item) => item.kind === "end");
        const holds = items.filter((item) => item.kind === "hold");
        const notAfter = new Date(Date.now() + MINUTE_MS);
        const parameters = [notAfter, `{${lanes.join(",")}}`, arrayOfEnds(ends), arrayOfHolds(holds)];
        const rows = await database.call<BillRow>("bill", serverId, ...parameters);
        return items.map((item) => {
          const sent: readonly BillItem[] = item.kind === "end" ? ends : holds;
          const n = sent.indexOf(item) + 1;
          return rows.find((row) => row.kind === item.kind && row.n === n) as BillRow;
        });
      },
    });
  }

  async hold(hold: HoldRequest): Promise<object> {
    const lane = laneOfId(hold.accountId);
    const row = await this.#batcher.submit({ kind: "hold", lane, hold });
    const { outcome, balance_micros: balanceMicros, held_micros: heldMicros } = row;
    if (outcome === "limited") return { outcome, limitId: JSON.parse(row.limits ?? "{}").refusal.id };
    return outcome === "insufficient" ? { outcome, balanceMicros, heldMicros } : { outcome };
  }

  async end(end: EndRequest): Promise<EndOutcome> {
    const { generationId, accountId } = end;
    const lane = laneOfId(accountId);
    const row = await this.#batcher.submit({ kind: "end", lane, end });
    if (row.outcome === "posted") {
      if (row.amount_micros === null) return { outcome: "released" };
      return { outcome: "settled", balanceMicros: row.balance_micros, chargedMicros: -row.amount_micros };
    }
    const id = entryIdOf(generationId);
    const [entry] = await this.#database.call<EntryRow>("get_entry", lane, accountId, id, monthOfId(id));
    if (!entry) return { outcome: "missing" };
    const { balance_after_micros: balanceMicros, amount_micros: amountMicros } = entry;
    return { outcome: "settled", balanceMicros, chargedMicros: -amountMicros };
  }
}
