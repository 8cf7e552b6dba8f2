/** Replaces a text in one function of schema vx. */
export type SqlPatch = { readonly function: string; readonly find: string; readonly put: string };
/** Replaces a text in one module of the server. */
export type CodePatch = { readonly file: string; readonly find: string; readonly put: string };

/** A plausible bug, and the fault under which the checker must find it. */
export type Variant = {
  readonly name: string;
  readonly under: string;
  /** The beginning of the rule that it must break; if absent, any rule. */
  readonly rule?: string;
  readonly sql?: readonly SqlPatch[];
  /** A further change that the bug needs to have an effect. */
  readonly statement?: string;
  readonly code?: CodePatch;
};

export const VARIANTS: readonly Variant[] = [
  {
    name: "lanes are not locked",
    under: "none",
    sql: [{ function: "bill", find: "AND l.is_owned ORDER BY l.lane FOR UPDATE;", put: "AND l.is_owned;" }],
  },
  {
    name: "admission ignores revocations",
    under: "none",
    sql: [{ function: "admitted_keys", find: "key_state(k.revoked_at,", put: "key_state(NULL," }],
  },
  {
    name: "streams of a revoked key continue",
    under: "none",
    code: { file: "src/generations/generation.ts", find: "if (prompt.streamed && ", put: "if (false && " },
  },
  {
    name: "a window restarts when the clock is set back",
    under: "the database clock changes",
    sql: [
      { function: "counting_window", find: "GREATEST(p_stored, p_current)", put: "p_current" },
      { function: "admit", find: "WHEN w.minute >= excluded.minute", put: "WHEN w.minute = excluded.minute" },
    ],
  },
  {
    name: "a batch exceeds the limit",
    under: "none",
    sql: [{ function: "admit", find: "excluded.rpm - w.used", put: "excluded.rpm - w.used / 2" }],
  },
  {
    name: "a settlement ignores the state of the hold",
    under: "database: replies lost after COMMIT",
    sql: [
      {
        function: "post_entries",
        find: "(r.hold_place IS NULL OR r.generation_id = v_current_hold)",
        put: "r.generation_id = v_current_hold",
      },
      { function: "post_entries", find: "- r.held;", put: "- coalesce(r.held, 0);" },
    ],
    statement: "ALTER TABLE vx.ledger DROP CONSTRAINT ledger_entry_once",
  },
  {
    name: "usage counts the requests of the last batch alone",
    under: "none",
    sql: [{ function: "add_usage", find: "requests = u.requests + excluded.requests", put: "requests = excluded.requests" }],
  },
  {
    name: "idempotency keys are ignored",
    under: "none",
    sql: [
      {
        function: "place_holds",
        find: "IF r.is_outdated THEN",
        put: "r.idempotency_key := NULL; v_answered := false; v_running := false; IF r.is_outdated THEN",
      },
    ],
  },
  {
    name: "the response is sent before the settlement",
    under: "none",
    code: {
      file: "src/generations/generation.ts",
      find: 'const ended = await measured(trace?.startStage("settlement"), settler.end(end, giveUp));',
      put: 'const ended = { outcome: "settled", balanceMicros: 0n }; setTimeout(() => settler.end(end), 250);',
    },
  },
  {
    name: "a disconnect from a stream is not charged",
    under: "none",
    code: {
      file: "src/generations/charge.ts",
      find: "? progress.wasSent :",
      put: "? progress.wasSent && !ended.spec.prompt.streamed :",
    },
  },
  {
    name: "a disconnect before the first token is not charged",
    under: "none",
    code: {
      file: "src/generations/charge.ts",
      find: "? progress.wasSent :",
      put: "? progress.wasSent && !isEmpty(ended.output) :",
    },
  },
  {
    name: "a unary call whose deadline passes is not charged",
    under: "none",
    code: {
      file: "src/generations/charge.ts",
      find: "? progress.wasSent :",
      put: '? progress.wasSent && ending.why !== "deadline_exceeded" :',
    },
  },
  {
    name: "a failed call is charged",
    under: "none",
    code: { file: "src/generations/charge.ts", find: "return isDelivered(ended);", put: "return true;" },
  },
  {
    name: "the charge is not limited to the hold",
    under: "none",
    code: {
      file: "src/domain/price.ts",
      find: "const output = Math.min(usage.output, maxOutputTokens);",
      put: "const output = usage.output;",
    },
  },
  {
    name: "failures of one account open the breaker for all",
    under: "one account's prompts fail",
    code: { file: "src/upstreams/runner/guarded-upstream.ts", find: "breaker.admit(accountId,", put: 'breaker.admit("all",' },
  },
  {
    name: "the maximum number of keys is ignored",
    under: "none",
    sql: [{ function: "check_key_cap", find: "WHERE v_active > p_plan.max_active_keys", put: "WHERE false" }],
  },
  {
    name: "operator events are not chained",
    under: "none",
    sql: [{ function: "append_operator_event", find: "v_chain.last_hash, v_new", put: "'', v_new" }],
  },
  {
    name: "holds of dead servers are not released",
    under: "server killed at any point",
    sql: [{ function: "lanes_to_sweep", find: "WHERE (h.expires_at", put: "WHERE false AND (h.expires_at" }],
  },
  {
    name: "running calls of dead servers stay counted by limits",
    under: "server killed at any point",
    rule: "13",
    sql: [{ function: "sweep", find: "IN ARRAY v_released LOOP", put: "IN ARRAY v_released[1:0] LOOP" }],
  },
  {
    name: "limits keep the tokens that a call held",
    under: "none",
    rule: "13",
    sql: [
      {
        function: "settle_limits",
        find: "WHEN 'tokens' THEN p_tokens",
        put: "WHEN 'tokens' THEN coalesce(v_amounts[array_position(v_ids, c.limit_ids[i])], p_tokens)",
      },
    ],
  },
  {
    name: "a limit ignores the calls of its model",
    under: "none",
    rule: "13",
    sql: [{ function: "check_limits", find: "c.models[i] NOT IN ('', p_model)", put: "c.models[i] <> ''" }],
  },
  {
    name: "weeks and months of limits start a day early",
    under: "none",
    rule: "13",
    sql: [
      {
        function: "window_end",
        find: "date_trunc(p_period, (p_at AT TIME ZONE 'UTC'::text))",
        put: "(date_trunc(p_period, (p_at AT TIME ZONE 'UTC') + interval '1 day') - interval '1 day')",
      },
    ],
  },
  {
    name: "the calls of a key do not count against its parent",
    under: "none",
    rule: "13",
    sql: [{ function: "limit_subjects", find: "SELECT unnest(p_key_ids)", put: "SELECT p_key_ids[cardinality(p_key_ids)]" }],
  },
  {
    name: "a key gives another one a limit above its own",
    under: "none",
    rule: "a child",
    sql: [{ function: "check_limit_bounds", find: "WHERE n.amount > l.amount", put: "WHERE false AND n.amount > l.amount" }],
  },
  {
    name: "a limit that is removed while a call runs moves what others hold",
    under: "none",
    rule: "13",
    sql: [{ function: "settle_limits", find: "WHEN v_ids[i] = c.limit_ids[i] THEN i", put: "WHEN true THEN i" }],
  },
  {
    name: "a new limit starts at zero in the middle of a month",
    under: "none",
    rule: "13",
    sql: [{ function: "set_limits", find: "PERFORM count_spent(", put: "IF false THEN END IF; --" }],
  },
  {
    name: "a late statement is executed and its hold is not released",
    under: "database: statements 10 s late",
    sql: [{ function: "bill", find: "IF clock_timestamp() > p_not_after THEN", put: "IF false THEN" }],
    code: { file: "src/generations/presence.ts", find: "filter(({ id }) => !isOpen(id))", put: "filter(() => false)" },
  },
  {
    name: "a settlement is not retried after an unexpected error",
    under: "missing function for 2.5 s",
    code: { file: "src/generations/billing.ts", find: "if (now() + pauseMs > this.#retryUntil) {", put: "if (now() > 0) {" },
  },
  {
    name: "charges spend the credit that expires last",
    under: "none",
    rule: "vx audit",
    sql: [
      {
        function: "grant_rests",
        find: "WINDOW until AS (ORDER BY g.expires_at, g.seq)",
        put: "WINDOW until AS (ORDER BY g.expires_at DESC, g.seq DESC)",
      },
    ],
  },
  {
    name: "expired credit is spent",
    under: "none",
    rule: "expired credit",
    sql: [
      {
        function: "place_holds",
        find: "THEN greatest(a.held_micros, a.balance_micros - expired_credit(e.lane, e.account_id, v_now)) ELSE",
        put: "THEN a.balance_micros ELSE",
      },
    ],
  },
  {
    name: "a payment is credited with each of its events",
    under: "none",
    rule: "15",
    sql: [
      {
        function: "apply_payment",
        find: "IF v_seen.status = 'paid' AND v_topup.paid_at IS NULL THEN",
        put: "IF v_seen.status = 'paid' THEN",
      },
      {
        function: "apply_payment",
        find: "IF NOT EXISTS (SELECT 1 FROM movement_keys m",
        put: "IF true OR NOT EXISTS (SELECT 1 FROM movement_keys m",
      },
      {
        function: "apply_payment",
        find: "AND l.seq = v_account.last_seq + 1;",
        put: "AND l.seq = v_account.last_seq + 1 ON CONFLICT DO NOTHING;",
      },
    ],
  },
  {
    name: "a refund of a payment takes more than the balance",
    under: "none",
    rule: "1 ",
    sql: [{ function: "take_owed", find: "least(a.owed_micros, a.balance_micros - a.held_micros)", put: "a.owed_micros" }],
    statement: "ALTER TABLE vx.accounts DROP CONSTRAINT balance_covers_holds",
  },
  {
    name: "a dispute that is won is not credited",
    under: "none",
    rule: "15",
    sql: [{ function: "apply_payment", find: "ELSIF v_change < 0 THEN", put: "ELSIF false THEN" }],
  },
  {
    name: "the output selects the tier of the prices",
    under: "none",
    rule: "2",
    code: { file: "src/domain/price.ts", find: "inputTokensOf(usage)", put: "usage.output + usage.reasoning" },
  },
  {
    name: "a customer sees what a call costs",
    under: "none",
    rule: "customers",
    sql: [
      {
        function: "adjust_entry",
        find: "'adjustment.posted', jsonb_build_object(",
        put: "'adjustment.posted', to_jsonb(p_entry) || jsonb_build_object(",
      },
    ],
  },
  {
    name: "refunds of an entry exceed its charge",
    under: "none",
    rule: "corrections",
    sql: [{ function: "refund_entry", find: "v_net := net_charge(v_entry);", put: "v_net := -v_entry.amount_micros;" }],
  },
  {
    name: "a re-rating takes a refund back",
    under: "none",
    rule: "corrections",
    sql: [{ function: "rerate_entries", find: "AND x.refund_micros IS NOT NULL", put: "AND false" }],
  },
  {
    name: "a refund's key counts at one server only",
    under: "none",
    rule: "corrections",
    code: {
      file: "src/ledger/corrections.ts",
      find: "micros: amountMicros, reason, idempotencyKey }",
      put: "micros: amountMicros, reason, idempotencyKey: idempotencyKey + process.pid }",
    },
  },
  {
    name: "a refund's key counts for one charge only",
    under: "none",
    rule: "corrections",
    code: {
      file: "src/ledger/corrections.ts",
      find: "micros: amountMicros, reason, idempotencyKey }",
      put: "micros: amountMicros, reason, idempotencyKey: idempotencyKey + entryId }",
    },
  },
  {
    name: "the numbers of events have gaps",
    under: "none",
    rule: "14",
    sql: [{ function: "write_event", find: "SET seq = e.seq + 1", put: "SET seq = e.seq + 2" }],
  },
  {
    name: "an event is written outside the transaction",
    under: "none",
    rule: "14",
    sql: [
      {
        function: "move_balance",
        find: "PERFORM write_event(p_lane, p_account_id, p_kind || '.posted', ",
        put: "PERFORM concat(",
      },
    ],
    statement:
      "ALTER FUNCTION vx.write_event SECURITY DEFINER SET search_path = vx; GRANT EXECUTE ON FUNCTION vx.write_event TO vx_app",
    code: {
      file: "src/ledger/store.ts",
      find: "{ ...movement, ...place });\n",
      put: "{ ...movement, ...place });\n  await database.at(place.lane).call('write_event', place.lane, movement.accountId, movement.kind + '.posted', JSON.stringify({ entry_id: row?.id }));\n",
    },
  },
  {
    name: "a delivery counts before its outcome is stored",
    under: "server killed at any point",
    rule: "14",
    sql: [
      {
        function: "claim_deliveries",
        find: "), updated AS (",
        put: "), counted AS (UPDATE deliveries d SET state = 'delivered' FROM chosen c JOIN found f ON f.lane = c.lane AND f.webhook_id = c.webhook_id WHERE c.state = 'due' AND d.lane = f.lane AND d.account_id = f.account_id AND d.seq = f.seq AND d.webhook_id = f.webhook_id), updated AS (",
      },
    ],
  },
  {
    name: "a claim does not end",
    under: "server killed at any point",
    rule: "14",
    sql: [
      {
        function: "claim_deliveries",
        find: "claimed_until = CASE c.state WHEN 'due' THEN v_now + interval '1 minute'",
        put: "claimed_until = CASE c.state WHEN 'due' THEN 'infinity'",
      },
    ],
  },
  {
    name: "first attempts are not in order",
    under: "none",
    rule: "14",
    sql: [{ function: "next_delivery", find: "ORDER BY d.due_at LIMIT 1", put: "ORDER BY d.due_at DESC LIMIT 1" }],
  },
  {
    name: "the key is logged",
    under: "none",
    code: {
      file: "src/server/credentials/bearer.ts",
      find: "return match[1];",
      put: "console.error(match[1]); return match[1];",
    },
  },
];
