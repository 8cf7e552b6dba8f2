import { words } from "./words.ts";

const COLUMNS = words(`
    hash_version account_id seq id month kind amount_micros balance_after_micros reason request_id key_id
    model price_version input cached_input cache_write output reasoning images image_tokens user_id trace_id
    created_at cache_write_1h price_tier price_list_version upstream upstream_cost_micros adjusted_id
  `);

/** The hash of each row `l` of the ledger in the search_path, recomputed over the window `c` of its account. */
export const EXPECTED_HASH_IN_PATH = `ledger_hash(lag(l.hash, 1, '\\x'::bytea) OVER c, ${COLUMNS.map((name) => `l.${name}`).join(", ")})`;

/** The same for `vx.ledger l`. */
export const EXPECTED_HASH = `vx.${EXPECTED_HASH_IN_PATH}`;

/** The hash of a record `l` after a row with the hash `v_hash`. */
export const EXPECTED_HASH_OF_ROW = `vx.ledger_hash(v_hash, ${COLUMNS.map((name) => `l.${name}`).join(", ")})`;
