/** A text in one function of schema vx, and what stands there instead. */
export type SqlPatch = { readonly function: string; readonly find: string; readonly put: string };
/** The same in one module of the server. */
export type CodePatch = { readonly file: string; readonly find: string; readonly put: string };

/** A bug that somebody could make, and the fault under which it must be found. */
export type Variant = {
  readonly name: string;
  readonly under: string;
  readonly sql?: readonly SqlPatch[];
  /** What else has to go for the bug to show. */
  readonly statement?: string;
  readonly code?: CodePatch;
};

const LOCK_ALONE = "PERFORM FROM vx.lanes l WHERE l.lane = p_lane FOR UPDATE;";

export const VARIANTS: readonly Variant[] = [
  {
    name: "lanes are not locked",
    under: "none",
    sql: [
      {
        function: "bill",
        find: "PERFORM 1 FROM vx.lanes l WHERE l.lane = ANY (e_lane || h_lane) ORDER BY l.lane FOR UPDATE;",
        put: "",
      },
      { function: "hold_alone", find: LOCK_ALONE, put: "" },
      { function: "end_alone", find: LOCK_ALONE, put: "" },
    ],
  },
  {
    name: "admission does not look at revocations",
    under: "none",
    sql: [{ function: "admit", find: "WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN", put: "WHEN" }],
  },
  {
    name: "streams of a revoked key go on",
    under: "none",
    code: { file: "src/metering/running.ts", find: "if (streamed && ", put: "if (false && " },
  },
  {
    name: "a window begins anew when the clock steps back",
    under: "the database's clock steps",
    sql: [
      { function: "admit", find: "greatest(w.minute, excluded.minute)", put: "excluded.minute" },
      { function: "admit", find: "WHEN w.minute >= excluded.minute", put: "WHEN w.minute = excluded.minute" },
    ],
  },
  {
    name: "a batch may take more than the limit",
    under: "none",
    sql: [{ function: "admit", find: "excluded.rpm - w.used", put: "excluded.rpm - w.used / 2" }],
  },
  {
    name: "settled without a look at the hold",
    under: "database: replies lost after COMMIT",
    sql: [
      { function: "end_holds", find: "IF r.hold_place IS NULL OR r.hold_id", put: "IF r.hold_id" },
      {
        function: "end_holds",
        find: "a.lane = h.lane AND a.id = h.account_id",
        put: "a.lane = s.lane AND a.id = s.account_id",
      },
      { function: "end_holds", find: "+ r.amount_micros;", put: "+ coalesce(r.amount_micros, 0);" },
      {
        function: "end_alone",
        find: `FROM vx.holds h
    JOIN vx.accounts a ON a.lane = h.lane AND a.id = h.account_id
    WHERE h.lane = p_lane AND h.id = p_hold_id AND h.account_id = p_account_id;`,
        put: `FROM vx.accounts a LEFT JOIN vx.holds h ON h.lane = a.lane AND h.id = p_hold_id
    WHERE a.lane = p_lane AND a.id = p_account_id;`,
      },
      {
        function: "end_alone",
        find: "AS place, h.amount_micros,",
        put: "AS place, coalesce(h.amount_micros, 0) AS amount_micros,",
      },
    ],
    statement: "DROP INDEX vx.ledger_entry_once",
  },
  {
    name: "idempotency keys are not looked at",
    under: "none",
    sql: [
      {
        function: "bill",
        find: "h_idempotency_key, h_digest) x",
        put: "array_fill(NULL::text, ARRAY[cardinality(h_lane)]), h_digest) x",
      },
    ],
  },
  {
    name: "answered before it is settled",
    under: "none",
    code: {
      file: "src/metering/generation.ts",
      find: "const { outcome, balanceMicros } = await this.#settle();",
      put: "const outcome = await this.#outcome(); const balanceMicros = 0n; setTimeout(() => this.#settle(), 250);",
    },
  },
  {
    name: "a caller who leaves a stream pays nothing",
    under: "none",
    code: {
      file: "src/metering/generation.ts",
      find: "return this.#progress.isAsked;",
      put: "return this.#progress.isAsked && !this.order.streamed;",
    },
  },
  {
    name: "a caller who leaves before the first token pays nothing",
    under: "none",
    code: {
      file: "src/metering/generation.ts",
      find: "return this.#progress.isAsked;",
      put: "return this.#progress.isAsked && !this.#text.isEmpty;",
    },
  },
  {
    name: "a unary call whose deadline passes pays nothing",
    under: "none",
    code: {
      file: "src/metering/generation.ts",
      find: "return this.#progress.isAsked;",
      put: 'return this.#progress.isAsked && this.#stop !== "deadline_exceeded";',
    },
  },
  {
    name: "a call that failed is charged",
    under: "none",
    code: {
      file: "src/metering/generation.ts",
      find: "return this.order.streamed && !this.#text.isEmpty;",
      put: "return true;",
    },
  },
  {
    name: "the charge is not clamped to the hold",
    under: "none",
    code: {
      file: "src/domain/price.ts",
      find: "Math.min(usage.outputTokens, most.outputTokens)",
      put: "usage.outputTokens",
    },
  },
  {
    name: "the cap on keys is not looked at",
    under: "none",
    sql: [{ function: "check_key_cap", find: "IF v_active > p_plan.max_active_keys", put: "IF false" }],
  },
  {
    name: "holds of dead servers stay",
    under: "server killed at any point",
    sql: [
      { function: "lanes_to_sweep", find: "WHERE h.expires_at", put: "WHERE false AND h.expires_at" },
      { function: "lanes_to_sweep", find: "OR NOT EXISTS", put: "OR false AND NOT EXISTS" },
    ],
  },
  {
    name: "the key is logged",
    under: "none",
    code: {
      file: "src/gate/bearer.ts",
      find: "return match[1];",
      put: "console.error(match[1]); return match[1];",
    },
  },
];
