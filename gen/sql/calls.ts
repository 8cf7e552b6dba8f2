// Written by tools/write-sql-calls.ts from the catalogue of a migrated database: npm run generate:sql. The SQL names what can
// be null: see tools/sql/catalogue.ts.
import { LANE_COUNT } from "../../src/domain/lane.ts";
import { type Action, type ChangedCells, change } from "../../src/database/action.ts";
import type { FunctionCaller } from "../../src/database/driver/cells.ts";

export type Plans = {
  name: string;
  rpm: number;
  max_active_keys: number;
  max_keys_created_per_hour: number;
};

export type AccountViews = {
  lane: number;
  id: string;
  name: string;
  plan: string;
  balance_micros: bigint;
  held_micros: bigint;
  created_at: Date;
  suspended_at: Date | null;
  external_id: string;
  email: string;
  notes: string;
  low_balance_micros: bigint | null;
  owed_micros: bigint;
  closed_at: Date | null;
  has_grants: boolean;
  day_micros: bigint;
  month_micros: bigint;
};

export type FoundAccounts = {
  term: string;
  is_match: boolean;
  was_found: boolean;
  lane: number;
  id: string;
  name: string;
  plan: string;
  balance_micros: bigint;
  held_micros: bigint;
  created_at: Date;
  suspended_at: Date | null;
  external_id: string;
  email: string;
  notes: string;
  low_balance_micros: bigint | null;
  owed_micros: bigint;
  closed_at: Date | null;
  has_grants: boolean;
  day_micros: bigint;
  month_micros: bigint;
};

export type KeyView = {
  id: string;
  account_id: string;
  name: string;
  plan: string;
  scopes: number;
  state: "active" | "revoked" | "expired";
  rpm: number;
  visible_start: string;
  visible_end: string;
  created_at: Date;
  revoked_at: Date | null;
  expires_at: Date | null;
  last_used_at: Date | null;
  previous_expires_at: Date | null;
  models: string | null;
  limits: string | null;
  allowed_cidrs: string | null;
};

export type FoundKeys = {
  list: number;
  sorted_name: string;
  is_match: boolean;
  account_name: string;
  id: string;
  account_id: string;
  name: string;
  plan: string;
  scopes: number;
  state: "active" | "revoked" | "expired";
  rpm: number;
  visible_start: string;
  visible_end: string;
  created_at: Date;
  revoked_at: Date | null;
  expires_at: Date | null;
  last_used_at: Date | null;
  previous_expires_at: Date | null;
  models: string | null;
  limits: string | null;
  allowed_cidrs: string | null;
};

export type CreatedKeys = {
  wait_seconds: number;
  max_keys_created_per_hour: number;
  id: string | null;
  account_id: string | null;
  name: string | null;
  plan: string;
  scopes: number | null;
  state: "active" | "revoked" | "expired" | null;
  rpm: number | null;
  visible_start: string | null;
  visible_end: string | null;
  created_at: Date | null;
  revoked_at: Date | null;
  expires_at: Date | null;
  last_used_at: Date | null;
  previous_expires_at: Date | null;
  models: string | null;
  limits: string | null;
  allowed_cidrs: string | null;
};

export type LimitView = {
  id: string;
  owner_id: string;
  subject_id: string;
  metric: "cost" | "tokens" | "generations" | "concurrent" | "cost_alert" | "requests" | "active_keys";
  period: "" | "minute" | "hour" | "day" | "week" | "month" | "total";
  amount: bigint;
  model: string;
  per_user: boolean;
  temporary_amount: bigint | null;
  temporary_until: Date | null;
  valid_amount: bigint;
  spent: bigint;
  held: bigint;
  resets_at: Date | null;
  counted_since: Date | null;
  is_of_operator: boolean;
};

export type AccountPriceView = {
  version: number;
  model: string;
  discount: number | null;
  prices: string | null;
  effective_from: Date;
};

export type PricedLedger = {
  lane: number;
  account_id: string;
  seq: bigint;
  id: string;
  month: number;
  kind: "generation" | "credit" | "topup" | "refund" | "adjustment" | "expiry";
  amount_micros: bigint;
  balance_after_micros: bigint;
  reason: string;
  request_id: string;
  key_id: string;
  model: string;
  price_version: number;
  input: number;
  cached_input: number;
  cache_write: number;
  output: number;
  reasoning: number;
  images: number;
  image_tokens: number;
  user_id: string;
  trace_id: string;
  created_at: Date;
  hash_version: number;
  hash: Buffer;
  cache_write_1h: number;
  price_tier: number;
  price_list_version: number;
  upstream: string;
  upstream_cost_micros: bigint | null;
  adjusted_id: string;
  input_price: bigint | null;
  cached_input_price: bigint | null;
  cache_write_price: bigint | null;
  cache_write_1h_price: bigint | null;
  output_price: bigint | null;
  reasoning_price: bigint | null;
  image_price: bigint | null;
  request_price: bigint | null;
  user_name: string;
};

export type UsageGroup = {
  start: number | null;
  account_id: string;
  key_id: string;
  model: string;
  user_name: string;
  upstream: string;
  requests: bigint;
  input: bigint;
  cached_input: bigint;
  cache_write: bigint;
  output: bigint;
  reasoning: bigint;
  images: bigint;
  image_tokens: bigint;
  cost_micros: bigint;
  upstream_cost_micros: bigint;
  uncosted_micros: bigint;
  through_seq: bigint | null;
  large_account_id: string | null;
  next: string | null;
};

export type PricedUsage = {
  lane: number;
  account_id: string;
  quarter: number;
  key_id: string;
  model: string;
  user_id: string;
  price_version: number;
  requests: bigint;
  input: bigint;
  cached_input: bigint;
  cache_write: bigint;
  output: bigint;
  reasoning: bigint;
  images: bigint;
  image_tokens: bigint;
  cost_micros: bigint;
  cache_write_1h: bigint;
  price_tier: number;
  price_list_version: number;
  upstream: string;
  upstream_cost_micros: bigint;
  uncosted_micros: bigint;
  account_name: string;
  discount: number | null;
  user_name: string;
  input_price: bigint | null;
  cached_input_price: bigint | null;
  cache_write_price: bigint | null;
  cache_write_1h_price: bigint | null;
  output_price: bigint | null;
  reasoning_price: bigint | null;
  image_price: bigint | null;
  request_price: bigint | null;
  input_list_price: bigint | null;
  cached_input_list_price: bigint | null;
  cache_write_list_price: bigint | null;
  cache_write_1h_list_price: bigint | null;
  output_list_price: bigint | null;
  reasoning_list_price: bigint | null;
  image_list_price: bigint | null;
  request_list_price: bigint | null;
};

export type Topups = {
  lane: number;
  id: string;
  account_id: string;
  state: "pending" | "paid" | "failed" | "expired" | "refunded" | "disputed";
  amount_micros: bigint;
  currency: string;
  return_url: string;
  has_default_url: boolean;
  idempotency_key: string | null;
  created_at: Date;
  version: bigint;
  page_id: string | null;
  page_url: string;
  payment_id: string | null;
  paid_at: Date | null;
  entry_id: string | null;
  receipt_url: string;
  refunded_micros: bigint;
  disputed_micros: bigint;
  problem: string;
  next_poll_at: Date | null;
  is_automatic: boolean;
  failure: string;
  invoice_url: string;
};

export type AutoTopupView = {
  account_id: string;
  is_enabled: boolean;
  threshold_micros: bigint;
  amount_micros: bigint;
  monthly_max_micros: bigint;
  failures: number;
  last_failure: string;
  customer_id: string | null;
  method_id: string | null;
  method: string;
  page_id: string | null;
  page_url: string;
  page_created_at: Date | null;
  month_micros: bigint;
  pending_topup_id: string;
};

export type Admission = {
  n: number;
  state: "active" | "revoked" | "expired" | "suspended" | "rotated";
  scopes: number;
  granted: number;
  used: number | null;
  rpm: number;
  seconds_left: number;
  key_id: string;
  account_id: string;
  key_name: string;
  plan: string;
  visible_start: string;
  visible_end: string;
  balance_micros: bigint;
  models: string | null;
  allowed_cidrs: string | null;
  current_fingerprint: Buffer | null;
  price_list_version: number;
};

export type ItemResult = {
  kind: "end" | "hold" | "late";
  n: number;
  outcome: string;
  balance_micros: bigint | null;
  held_micros: bigint | null;
  amount_micros: bigint | null;
  clock: Date | null;
  limits: string | null;
};

export type EventView = {
  id: string;
  account_id: string;
  seq: bigint;
  type: string;
  created_at: Date;
  created_micros: bigint;
  data: string;
};

export type FailureView = {
  id: string;
  created_at: Date;
  key_id: string;
  method: string;
  model: string;
  upstream: string;
  status: number;
  code: string;
  message: string;
  latency_ms: number;
  request_id: string;
  omitted: number;
};

export type WebhookView = {
  id: string;
  account_id: string;
  url: string;
  description: string;
  types: string;
  state: "enabled" | "paused" | "disabled";
  disabled_reason: string;
  created_at: Date;
  previous_expires_at: Date | null;
  secret: string | null;
};

export type OperatorView = {
  id: string;
  name: string;
  role: "viewer" | "support" | "finance" | "admin";
  state: "active" | "revoked";
  created_at: Date;
  revoked_at: Date | null;
  last_used_at: Date | null;
  email: string;
  identity_bound: boolean;
};

export type SignUpInvitations = {
  id: string;
  fingerprint: Buffer;
  email: string;
  created_by: string;
  created_at: Date;
  expires_at: Date;
  person_id: string | null;
};

export type Invitations = {
  lane: number;
  id: string;
  account_id: string;
  fingerprint: Buffer;
  role: "viewer" | "developer" | "billing" | "owner";
  email: string;
  created_by: string;
  created_at: Date;
  expires_at: Date;
};

export type AcceptInvitationRow = {
  has_joined: boolean;
};

export async function acceptInvitation(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
  fingerprint: Uint8Array;
  email: string;
  linkId: string;
}): Promise<AcceptInvitationRow[]> {
  return await change<AcceptInvitationRow>(cells, p.lane, action, "accept_invitation", p.lane, p.accountId, p.id, p.fingerprint, p.email, p.linkId);
}

export type AccountGrantsRow = {
  balance_micros: bigint;
  held_micros: bigint;
  entry_id: string | null;
  amount_micros: bigint | null;
  rest_micros: bigint | null;
  expires_at: Date | null;
  is_promotional: boolean | null;
};

export async function accountGrants(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
}): Promise<AccountGrantsRow[]> {
  return await cell.call<AccountGrantsRow>("account_grants", p.lane, p.accountId);
}

export async function accountWith(cell: FunctionCaller, p: {
  lane: number;
  id: string;
  month: number;
}): Promise<AccountViews[]> {
  return await cell.call<AccountViews>("account_with", p.lane, p.id, p.month);
}

export type AccountsToExpireRow = {
  lane: number;
  id: string;
};

export async function accountsToExpire(cell: FunctionCaller, p: {
  limit: number;
}): Promise<AccountsToExpireRow[]> {
  return await cell.call<AccountsToExpireRow>("accounts_to_expire", p.limit);
}

export type AccountsWithModelRow = {
  account_id: string;
  account_name: string;
  has_used: boolean;
};

export async function accountsWithModel(cell: FunctionCaller, p: {
  lane: number;
  model: string;
  from: number;
  end: number;
  after: string;
  limit: number;
}): Promise<AccountsWithModelRow[]> {
  return await cell.call<AccountsWithModelRow>("accounts_with_model", p.lane, p.model, p.from, p.end, p.after, p.limit);
}

export async function admit(cell: FunctionCaller, p: {
  items: string;
  whileSuspended?: string | undefined;
}): Promise<Admission[]> {
  return await cell.call<Admission>("admit", p.items, p.whileSuspended ?? "{}");
}

export async function applyAutoTopupPage(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  pageId: string;
  pageAt: Date;
  customerId: string;
  isOver: boolean;
  methodId?: string | null | undefined;
  method?: string | null | undefined;
}): Promise<void> {
  await cell.call("apply_auto_topup_page", p.lane, p.accountId, p.pageId, p.pageAt, p.customerId, p.isOver, p.methodId ?? null, p.method ?? null);
}

export type ApplyPaymentRow = {
  outcome: "applied" | "stale" | "unknown";
  account_id: string;
  alert: string;
};

export async function applyPayment(cell: FunctionCaller, p: {
  lane: number;
  id: string;
  version: bigint | number;
  seen: string;
}): Promise<ApplyPaymentRow[]> {
  return await cell.call<ApplyPaymentRow>("apply_payment", p.lane, p.id, p.version, p.seen);
}

export type AuditRow = {
  account_id: string;
  rule: string;
  detail: string;
  accounts: bigint;
  entries: bigint;
  keys: bigint;
  balance_micros: string;
  next_account_id: string | null;
  next_seq: bigint | null;
  next_rows: bigint | null;
  next_sum: string | null;
  next_hash: Buffer | null;
};

export async function audit(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  seq: bigint | number;
  rows: bigint | number;
  sum: string;
  hash: Uint8Array;
  limit: number;
  maxFindings: number;
}): Promise<AuditRow[]> {
  return await cell.call<AuditRow>("audit", p.lane, p.accountId, p.seq, p.rows, p.sum, p.hash, p.limit, p.maxFindings);
}

export type AuditArchivedUsageRow = {
  account_id: string;
  rule: string;
  detail: string;
  next: string | null;
  next_sum: string | null;
};

export async function auditArchivedUsage(cell: FunctionCaller, p: {
  lane: number;
  position: string;
  sum: string;
  limit: number;
  maxFindings: number;
}): Promise<AuditArchivedUsageRow[]> {
  return await cell.call<AuditArchivedUsageRow>("audit_archived_usage", p.lane, p.position, p.sum, p.limit, p.maxFindings);
}

export type AuditGrantsRow = {
  account_id: string;
  rule: string;
  detail: string;
  next_account_id: string | null;
};

export async function auditGrants(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  limit: number;
  maxFindings: number;
}): Promise<AuditGrantsRow[]> {
  return await cell.call<AuditGrantsRow>("audit_grants", p.lane, p.accountId, p.limit, p.maxFindings);
}

export type AuditLimitsRow = {
  account_id: string;
  rule: string;
  detail: string;
  next_account_id: string | null;
};

export async function auditLimits(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  limit: number;
  maxFindings: number;
}): Promise<AuditLimitsRow[]> {
  return await cell.call<AuditLimitsRow>("audit_limits", p.lane, p.accountId, p.limit, p.maxFindings);
}

export type AuditOperatorEventsRow = {
  account_id: string;
  rule: string;
  detail: string;
  events: bigint;
  next_lane: number | null;
  next_seq: bigint | null;
  next_hash: Buffer | null;
};

export async function auditOperatorEvents(cell: FunctionCaller, p: {
  lane: number;
  seq: bigint | number;
  hash: Uint8Array;
  limit: number;
  maxFindings: number;
}): Promise<AuditOperatorEventsRow[]> {
  return await cell.call<AuditOperatorEventsRow>("audit_operator_events", p.lane, p.seq, p.hash, p.limit, p.maxFindings);
}

export type AuditPricesRow = {
  account_id: string;
  rule: string;
  detail: string;
};

export async function auditPrices(cell: FunctionCaller, p: {
  maxFindings: number;
}): Promise<AuditPricesRow[]> {
  return await cell.call<AuditPricesRow>("audit_prices", p.maxFindings);
}

export type AuditUsageRow = {
  account_id: string;
  rule: string;
  detail: string;
  next_account_id: string | null;
  next_seq: bigint | null;
  next_sum: string | null;
};

export async function auditUsage(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  seq: bigint | number;
  sum: string;
  stored: string;
  quarter: number;
  limit: number;
  maxFindings: number;
}): Promise<AuditUsageRow[]> {
  return await cell.call<AuditUsageRow>("audit_usage", p.lane, p.accountId, p.seq, p.sum, p.stored, p.quarter, p.limit, p.maxFindings);
}

export type AutoTopupsDueRow = {
  account_id: string;
};

export async function autoTopupsDue(cell: FunctionCaller, p: {
  limit: number;
}): Promise<AutoTopupsDueRow[]> {
  return await cell.call<AutoTopupsDueRow>("auto_topups_due", p.limit);
}

export async function bill(cell: FunctionCaller, p: {
  serverId: string;
  notAfter?: Date | null | undefined;
  lanes: string;
  ends: string;
  holds: string;
}): Promise<ItemResult[]> {
  return await cell.call<ItemResult>("bill", p.serverId, p.notAfter ?? null, p.lanes, p.ends, p.holds);
}

export type CellStateRow = {
  lanes: string;
  epochs: string;
  shared_version: bigint;
  name: string | null;
};

export async function cellState(cell: FunctionCaller): Promise<CellStateRow[]> {
  return await cell.call<CellStateRow>("cell_state");
}

export type ClaimAuditRow = {
  is_due: boolean;
};

export async function claimAudit(cell: FunctionCaller, p: {
  hours: number;
}): Promise<ClaimAuditRow[]> {
  return await cell.call<ClaimAuditRow>("claim_audit", p.hours);
}

export type ClaimDeliveriesRow = {
  lane: number;
  webhook_id: string;
  claim: bigint;
  is_fast_only: boolean;
  is_hanging: boolean;
  account_id: string;
  seq: bigint;
  event_id: string;
  type: string;
  created_at: Date;
  data: string;
  attempts: number;
  url: string;
  secrets: string;
  revision: number;
};

export async function claimDeliveries(cell: FunctionCaller, p: {
  any: number;
  hanging: number;
  fast: number;
  busy: string;
  maxLane: number;
}): Promise<ClaimDeliveriesRow[]> {
  return await cell.call<ClaimDeliveriesRow>("claim_deliveries", p.any, p.hanging, p.fast, p.busy, p.maxLane);
}

export type ClaimSignUpRow = {
  account_id: string;
  gets_credit: boolean;
};

export async function claimSignUp(cells: ChangedCells, action: Action, p: {
  accountId: string;
  invitationId?: string | null | undefined;
  fingerprint?: Uint8Array | null | undefined;
  inviterRole?: string | null | undefined;
}): Promise<ClaimSignUpRow[]> {
  return await change<ClaimSignUpRow>(cells, LANE_COUNT, action, "claim_sign_up", p.accountId, p.invitationId ?? null, p.fingerprint ?? null, p.inviterRole ?? null);
}

export type CloseAccountRow = {
  status: "running" | "elsewhere" | "erasing" | "closed";
  entry_id: string | null;
  month: number | null;
};

export async function closeAccount(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  reason: string;
  balance: string;
  endedCustomerId?: string | null | undefined;
  isLogged: boolean;
  limit: number;
}): Promise<CloseAccountRow[]> {
  return await change<CloseAccountRow>(cells, p.lane, action, "close_account", p.lane, p.id, p.reason, p.balance, p.endedCustomerId ?? null, p.isLogged, p.limit);
}

export type ClosingOfRow = {
  active_keys: bigint;
  webhooks: bigint;
  pending_topups: string;
  payment_method: string;
};

export async function closingOf(cell: FunctionCaller, p: {
  lane: number;
  id: string;
}): Promise<ClosingOfRow[]> {
  return await cell.call<ClosingOfRow>("closing_of", p.lane, p.id);
}

export async function copySharedData(cell: FunctionCaller, p: {
  version: bigint | number;
  plans: string;
  limits: string;
  operators: string;
  prices: string;
  webhooks: string;
}): Promise<void> {
  await cell.call("copy_shared_data", p.version, p.plans, p.limits, p.operators, p.prices, p.webhooks);
}

export type CountFailuresRow = {
  period: number;
  code: string;
  calls: bigint;
};

export async function countFailures(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  keyId: string;
  model: string;
  first: string;
  end: string;
  max: number;
  starts: string;
}): Promise<CountFailuresRow[]> {
  return await cell.call<CountFailuresRow>("count_failures", p.lane, p.accountId, p.keyId, p.model, p.first, p.end, p.max, p.starts);
}

export type CountPlansRow = {
  plan: string;
  accounts: bigint;
  keys: bigint;
};

export async function countPlans(cell: FunctionCaller): Promise<CountPlansRow[]> {
  return await cell.call<CountPlansRow>("count_plans");
}

export async function createAccount(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  name: string;
  plan: string;
  profile?: string | undefined;
}): Promise<AccountViews[]> {
  return await change<AccountViews>(cells, p.lane, action, "create_account", p.lane, p.id, p.name, p.plan, p.profile ?? "{}");
}

export type CreateFirstAccountRow = {
  created: boolean;
};

export async function createFirstAccount(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  name: string;
  plan: string;
  entryId: string;
  month: number;
  amountMicros: bigint | number;
  reason: string;
  keyId: string;
  fingerprint: Uint8Array;
  scopes: number;
  visibleStart: string;
  visibleEnd: string;
  ownerId?: string | null | undefined;
  ownerIssuer?: string | null | undefined;
  ownerSubject?: string | null | undefined;
  ownerEmail?: string | null | undefined;
}): Promise<CreateFirstAccountRow[]> {
  return await change<CreateFirstAccountRow>(cells, p.lane, action, "create_first_account", p.lane, p.id, p.name, p.plan, p.entryId, p.month, p.amountMicros, p.reason, p.keyId, p.fingerprint, p.scopes, p.visibleStart, p.visibleEnd, p.ownerId ?? null, p.ownerIssuer ?? null, p.ownerSubject ?? null, p.ownerEmail ?? null);
}

export async function createInvitation(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
  fingerprint: Uint8Array;
  role: string;
  email: string;
}): Promise<Invitations[]> {
  return await change<Invitations>(cells, p.lane, action, "create_invitation", p.lane, p.accountId, p.id, p.fingerprint, p.role, p.email);
}

export async function createKey(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  key: string;
  defaultScopes: number;
  isPlayground?: boolean | undefined;
}): Promise<CreatedKeys[]> {
  return await change<CreatedKeys>(cells, p.lane, action, "create_key", p.lane, p.accountId, p.key, p.defaultScopes, p.isPlayground ?? false);
}

export type CreateLedgerPartitionsRow = {
  created: string;
};

export async function createLedgerPartitions(cell: FunctionCaller): Promise<CreateLedgerPartitionsRow[]> {
  return await cell.call<CreateLedgerPartitionsRow>("create_ledger_partitions");
}

export async function createOperator(cells: ChangedCells, action: Action, p: {
  id: string;
  name: string;
  role: string;
  email: string;
  fingerprint: Uint8Array;
}): Promise<OperatorView[]> {
  return await change<OperatorView>(cells, LANE_COUNT, action, "create_operator", p.id, p.name, p.role, p.email, p.fingerprint);
}

export type CreateSignUpAccountRow = {
  is_member: boolean;
};

export async function createSignUpAccount(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  name: string;
  plan: string;
  email: string;
  creditor: string;
  entryId: string;
  month: number;
  creditMicros: bigint | number;
  expiresAt?: Date | null | undefined;
}): Promise<CreateSignUpAccountRow[]> {
  return await change<CreateSignUpAccountRow>(cells, p.lane, action, "create_sign_up_account", p.lane, p.id, p.name, p.plan, p.email, p.creditor, p.entryId, p.month, p.creditMicros, p.expiresAt ?? null);
}

export async function createSignUpInvitation(cells: ChangedCells, action: Action, p: {
  id: string;
  fingerprint: Uint8Array;
  email: string;
}): Promise<SignUpInvitations[]> {
  return await change<SignUpInvitations>(cells, LANE_COUNT, action, "create_sign_up_invitation", p.id, p.fingerprint, p.email);
}

export async function createTopup(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
  amountMicros: bigint | number;
  currency: string;
  returnUrl: string;
  hasDefaultUrl: boolean;
  idempotencyKey?: string | null | undefined;
}): Promise<Topups[]> {
  return await change<Topups>(cells, p.lane, action, "create_topup", p.lane, p.accountId, p.id, p.amountMicros, p.currency, p.returnUrl, p.hasDefaultUrl, p.idempotencyKey ?? null);
}

export async function createWebhook(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
  url: string;
  description: string;
  types: string;
  max: number;
}): Promise<WebhookView> {
  return (await change<WebhookView>(cells, p.lane, action, "create_webhook", p.lane, p.accountId, p.id, p.url, p.description, p.types, p.max))[0] as WebhookView;
}

export async function deleteInvitation(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
}): Promise<void> {
  await change(cells, p.lane, action, "delete_invitation", p.lane, p.accountId, p.id);
}

export async function deleteLimit(cells: ChangedCells, action: Action, p: {
  lane: number;
  ownerId: string;
  id: string;
}): Promise<void> {
  await change(cells, p.lane, action, "delete_limit", p.lane, p.ownerId, p.id);
}

export async function deleteWebhook(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
}): Promise<void> {
  await change(cells, p.lane, action, "delete_webhook", p.lane, p.accountId, p.id);
}

export async function disableWebhook(cell: FunctionCaller, p: {
  lane: number;
  id: string;
  revision: number;
  reason: string;
}): Promise<void> {
  await cell.call("disable_webhook", p.lane, p.id, p.revision, p.reason);
}

export async function endPageSession(cells: ChangedCells, action: Action, p: {
  id: string;
}): Promise<void> {
  await change(cells, LANE_COUNT, action, "end_page_session", p.id);
}

export async function endSession(cell: FunctionCaller, p: {
  fingerprint: Uint8Array;
  requestId: string;
}): Promise<void> {
  await cell.call("end_session", p.fingerprint, p.requestId);
}

export async function eventPosition(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  after: string;
  at?: Date | null | undefined;
  days: number;
}): Promise<bigint> {
  return (await cell.call<{ event_position: bigint }>("event_position", p.lane, p.accountId, p.after, p.at ?? null, p.days))[0]!.event_position;
}

export async function expireAccountGrants(cell: FunctionCaller, p: {
  lane: number;
  id: string;
}): Promise<void> {
  await cell.call("expire_account_grants", p.lane, p.id);
}

export type ExpiringKeysRow = {
  lane: number;
  id: string;
};

export async function expiringKeys(cell: FunctionCaller, p: {
  limit: number;
}): Promise<ExpiringKeysRow[]> {
  return await cell.call<ExpiringKeysRow>("expiring_keys", p.limit);
}

export type ExportMovementsRow = {
  account_id: string;
  account_name: string;
  seq: bigint;
  id: string;
  kind: "generation" | "credit" | "topup" | "refund" | "adjustment" | "expiry";
  amount_micros: bigint;
  reason: string;
  created_at: Date;
  is_promotional: boolean;
};

export async function exportMovements(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  from: Date;
  to: Date;
  afterId: string;
  seq: bigint | number;
  limit: number;
}): Promise<ExportMovementsRow[]> {
  return await cell.call<ExportMovementsRow>("export_movements", p.lane, p.accountId, p.from, p.to, p.afterId, p.seq, p.limit);
}

export async function exportUsage(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  from: number;
  end: number;
  position: string;
  limit: number;
}): Promise<PricedUsage[]> {
  return await cell.call<PricedUsage>("export_usage", p.lane, p.accountId, p.from, p.end, p.position, p.limit);
}

export async function failuresPiece(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  first: string;
  end: string;
  rows: number;
}): Promise<string | null> {
  return (await cell.call<{ failures_piece: string | null }>("failures_piece", p.lane, p.accountId, p.first, p.end, p.rows))[0]!.failures_piece;
}

export async function filterEntries(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  kind: string;
  keyId: string;
  model: string;
  first: bigint | number;
  end: bigint | number;
  limit: number;
}): Promise<PricedLedger[]> {
  return await cell.call<PricedLedger>("filter_entries", p.lane, p.accountId, p.kind, p.keyId, p.model, p.first, p.end, p.limit);
}

export async function findAccounts(cell: FunctionCaller, p: {
  reference: string;
  withNames: boolean;
}): Promise<AccountViews[]> {
  return await cell.call<AccountViews>("find_accounts", p.reference, p.withNames);
}

export type FindMemberRow = {
  role: "viewer" | "developer" | "billing" | "owner";
  name: string;
  plan: string;
  balance_micros: bigint;
  is_suspended: boolean;
  price_list_version: number;
};

export async function findMember(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  personId?: string | null | undefined;
  email: string;
}): Promise<FindMemberRow[]> {
  return await cell.call<FindMemberRow>("find_member", p.lane, p.accountId, p.personId ?? null, p.email);
}

export type FindOperatorRow = {
  id: string;
  name: string;
  role: "viewer" | "support" | "finance" | "admin";
};

export async function findOperator(cell: FunctionCaller, p: {
  fingerprint: Uint8Array;
}): Promise<FindOperatorRow[]> {
  return await cell.call<FindOperatorRow>("find_operator", p.fingerprint);
}

export type FindPageSessionRow = {
  id: string;
  person_id: string;
  email: string;
  operator_name: string;
  account_id: string;
  expires_at: Date;
  issuer: string;
};

export async function findPageSession(cell: FunctionCaller, p: {
  fingerprint: Uint8Array;
}): Promise<FindPageSessionRow[]> {
  return await cell.call<FindPageSessionRow>("find_page_session", p.fingerprint);
}

export type FindSessionRow = {
  id: string;
  name: string;
  role: "viewer" | "support" | "finance" | "admin";
  expires_at: Date;
};

export async function findSession(cell: FunctionCaller, p: {
  fingerprint: Uint8Array;
  isUse: boolean;
}): Promise<FindSessionRow[]> {
  return await cell.call<FindSessionRow>("find_session", p.fingerprint, p.isUse);
}

export async function forgetCustomer(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  customerId: string;
}): Promise<void> {
  await cell.call("forget_customer", p.lane, p.accountId, p.customerId);
}

export async function getAccount(cell: FunctionCaller, p: {
  lane: number;
  id: string;
}): Promise<AccountViews[]> {
  return await cell.call<AccountViews>("get_account", p.lane, p.id);
}

export async function getAccountPrices(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  version: number;
}): Promise<AccountPriceView[]> {
  return await cell.call<AccountPriceView>("get_account_prices", p.lane, p.accountId, p.version);
}

export type GetAnswerRow = {
  answer: string;
};

export async function getAnswer(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  idempotencyKey: string;
}): Promise<GetAnswerRow[]> {
  return await cell.call<GetAnswerRow>("get_answer", p.lane, p.accountId, p.idempotencyKey);
}

export async function getAutoTopup(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
}): Promise<AutoTopupView[]> {
  return await cell.call<AutoTopupView>("get_auto_topup", p.lane, p.accountId);
}

export async function getEntry(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  id: string;
  month: number;
}): Promise<PricedLedger[]> {
  return await cell.call<PricedLedger>("get_entry", p.lane, p.accountId, p.id, p.month);
}

export type GetStatementRow = {
  kind: "opening_balance" | "credit" | "topup" | "refund" | "adjustment" | "expiry" | "generation" | "closing_balance";
  id: string;
  created_at: Date | null;
  reason: string;
  model: string;
  entries: bigint;
  input: bigint;
  output: bigint;
  amount_micros: bigint;
};

export async function getStatement(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  from: Date;
  to: Date;
}): Promise<GetStatementRow[]> {
  return await cell.call<GetStatementRow>("get_statement", p.lane, p.accountId, p.from, p.to);
}

export async function getTopup(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  id: string;
}): Promise<Topups[]> {
  return await cell.call<Topups>("get_topup", p.lane, p.accountId, p.id);
}

export type HeartbeatRow = {
  clock: Date;
};

export async function heartbeat(cell: FunctionCaller, p: {
  serverId: string;
  cells?: string | null | undefined;
}): Promise<HeartbeatRow[]> {
  return await cell.call<HeartbeatRow>("heartbeat", p.serverId, p.cells ?? null);
}

export type HoldFiguresRow = {
  holds: bigint;
  held_micros: bigint;
  expired: bigint;
};

export async function holdFigures(cell: FunctionCaller): Promise<HoldFiguresRow[]> {
  return await cell.call<HoldFiguresRow>("hold_figures");
}

export async function keepCurrency(cell: FunctionCaller, p: {
  code?: string | null | undefined;
}): Promise<string> {
  return (await cell.call<{ keep_currency: string }>("keep_currency", p.code ?? null))[0]!.keep_currency;
}

export async function lanesInUse(cell: FunctionCaller): Promise<number[]> {
  return (await cell.call<{ lanes_in_use: number }>("lanes_in_use")).map((row) => row.lanes_in_use);
}

export async function lanesToSweep(cell: FunctionCaller, p: {
  from: number;
  to: number;
}): Promise<number[]> {
  return (await cell.call<{ lanes_to_sweep: number }>("lanes_to_sweep", p.from, p.to)).map((row) => row.lanes_to_sweep);
}

export type LastAuditRow = {
  claimed_at: Date | null;
  started_at: Date | null;
  seconds: number | null;
  entries: bigint;
  findings: number;
};

export async function lastAudit(cell: FunctionCaller): Promise<LastAuditRow[]> {
  return await cell.call<LastAuditRow>("last_audit");
}

export type LedgerRangeRow = {
  first_seq: bigint;
  end_seq: bigint;
};

export async function ledgerRange(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  from?: Date | null | undefined;
  to?: Date | null | undefined;
}): Promise<LedgerRangeRow[]> {
  return await cell.call<LedgerRangeRow>("ledger_range", p.lane, p.accountId, p.from ?? null, p.to ?? null);
}

export async function linkPerson(cells: ChangedCells, action: Action, p: {
  accountId: string;
  linkId: string;
}): Promise<void> {
  await change(cells, LANE_COUNT, action, "link_person", p.accountId, p.linkId);
}

export async function listAccountPrices(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  before: number;
  limit: number;
}): Promise<AccountPriceView[]> {
  return await cell.call<AccountPriceView>("list_account_prices", p.lane, p.accountId, p.before, p.limit);
}

export async function listAccounts(cell: FunctionCaller, p: {
  before: string;
  limit: number;
}): Promise<AccountViews[]> {
  return await cell.call<AccountViews>("list_accounts", p.before, p.limit);
}

export async function listAllEvents(cell: FunctionCaller, p: {
  types: string;
  beforeMicros: bigint | number;
  beforeId: string;
  limit: number;
}): Promise<EventView[]> {
  return await cell.call<EventView>("list_all_events", p.types, p.beforeMicros, p.beforeId, p.limit);
}

export type ListArchivesRow = {
  month: number;
  file: string;
  sha256: Buffer;
  entries: bigint;
  removed_at: Date | null;
};

export async function listArchives(cell: FunctionCaller): Promise<ListArchivesRow[]> {
  return await cell.call<ListArchivesRow>("list_archives");
}

export type ListClosedAccountsRow = {
  account_id: string;
  closed_at: Date;
};

export async function listClosedAccounts(cell: FunctionCaller, p: {
  personId: string;
}): Promise<ListClosedAccountsRow[]> {
  return await cell.call<ListClosedAccountsRow>("list_closed_accounts", p.personId);
}

export async function listEntries(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  before: bigint | number;
  limit: number;
}): Promise<PricedLedger[]> {
  return await cell.call<PricedLedger>("list_entries", p.lane, p.accountId, p.before, p.limit);
}

export async function listEvents(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  types: string;
  position?: bigint | number | null | undefined;
  isNewestFirst: boolean;
  limit: number;
}): Promise<EventView[]> {
  return await cell.call<EventView>("list_events", p.lane, p.accountId, p.types, p.position ?? null, p.isNewestFirst, p.limit);
}

export async function listFailures(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  keyId: string;
  model: string;
  code: string;
  first: string;
  end: string;
  max: number;
  limit: number;
}): Promise<FailureView[]> {
  return await cell.call<FailureView>("list_failures", p.lane, p.accountId, p.keyId, p.model, p.code, p.first, p.end, p.max, p.limit);
}

export async function listInvitations(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
}): Promise<Invitations[]> {
  return await cell.call<Invitations>("list_invitations", p.lane, p.accountId);
}

export type ListMembersRow = {
  person_id: string;
  email: string;
  role: "viewer" | "developer" | "billing" | "owner";
  joined_at: Date;
  link_id: string;
};

export async function listMembers(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
}): Promise<ListMembersRow[]> {
  return await cell.call<ListMembersRow>("list_members", p.lane, p.accountId);
}

export type ListOperatorEventsRow = {
  lane: number;
  seq: bigint;
  created_at: Date;
  created_micros: bigint;
  actor_id: string;
  actor_name: string;
  method: string;
  target: string;
  account_id: string;
  reason: string;
  outcome: string;
  details: unknown;
  request_id: string;
};

export async function listOperatorEvents(cell: FunctionCaller, p: {
  actorId: string;
  method: string;
  target: string;
  accountId: string;
  from?: Date | null | undefined;
  to?: Date | null | undefined;
  beforeMicros: bigint | number;
  beforeLane: number;
  beforeSeq: bigint | number;
  limit: number;
}): Promise<ListOperatorEventsRow[]> {
  return await cell.call<ListOperatorEventsRow>("list_operator_events", p.actorId, p.method, p.target, p.accountId, p.from ?? null, p.to ?? null, p.beforeMicros, p.beforeLane, p.beforeSeq, p.limit);
}

export type ListPageSessionsRow = {
  id: string;
  created_at: Date;
  used_at: Date;
  user_agent: string;
  address: string;
};

export async function listPageSessions(cell: FunctionCaller, p: {
  personId: string;
}): Promise<ListPageSessionsRow[]> {
  return await cell.call<ListPageSessionsRow>("list_page_sessions", p.personId);
}

export type ListPersonAccountsRow = {
  account_id: string;
};

export async function listPersonAccounts(cell: FunctionCaller, p: {
  personId: string;
}): Promise<ListPersonAccountsRow[]> {
  return await cell.call<ListPersonAccountsRow>("list_person_accounts", p.personId);
}

export async function listPlans(cell: FunctionCaller): Promise<Plans[]> {
  return await cell.call<Plans>("list_plans");
}

export type ListPricesRow = {
  model: string;
  version: number;
  prices: string;
  effective_from: Date;
};

export async function listPrices(cell: FunctionCaller, p: {
  model: string;
  before: number;
  limit: number;
}): Promise<ListPricesRow[]> {
  return await cell.call<ListPricesRow>("list_prices", p.model, p.before, p.limit);
}

export async function listRecentEntries(cell: FunctionCaller, p: {
  before: string;
  month?: number | null | undefined;
  limit: number;
}): Promise<PricedLedger[]> {
  return await cell.call<PricedLedger>("list_recent_entries", p.before, p.month ?? null, p.limit);
}

export async function listTopups(cell: FunctionCaller, p: {
  lane?: number | null | undefined;
  accountId?: string | null | undefined;
  state: string;
  onlyProblems: boolean;
  before: string;
  limit: number;
}): Promise<Topups[]> {
  return await cell.call<Topups>("list_topups", p.lane ?? null, p.accountId ?? null, p.state, p.onlyProblems, p.before, p.limit);
}

export async function logOpenedPage(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
}): Promise<void> {
  await change(cells, p.lane, action, "log_opened_page", p.lane, p.accountId);
}

export async function logRefusal(cell: FunctionCaller, p: {
  caller: string;
  lane: number;
  accountId: string;
  outcome: string;
}): Promise<void> {
  await cell.call("log_refusal", p.caller, p.lane, p.accountId, p.outcome);
}

export type MonthsWithoutPartitionRow = {
  month: number;
  entries: bigint;
};

export async function monthsWithoutPartition(cell: FunctionCaller): Promise<MonthsWithoutPartitionRow[]> {
  return await cell.call<MonthsWithoutPartitionRow>("months_without_partition");
}

export async function moveBalance(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  entryId: string;
  month: number;
  kind: string;
  amountMicros: bigint | number;
  reason: string;
  idempotencyKey: string;
  expiresAt?: Date | null | undefined;
  isPromotional?: boolean | undefined;
}): Promise<PricedLedger[]> {
  return await change<PricedLedger>(cells, p.lane, action, "move_balance", p.lane, p.accountId, p.entryId, p.month, p.kind, p.amountMicros, p.reason, p.idempotencyKey, p.expiresAt ?? null, p.isPromotional ?? false);
}

export type NamesOfRow = {
  id: string;
  name: string;
};

export async function namesOf(cell: FunctionCaller, p: {
  accountIds: string;
  keyIds: string;
}): Promise<NamesOfRow[]> {
  return await cell.call<NamesOfRow>("names_of", p.accountIds, p.keyIds);
}

export async function openCustomerPage(cells: ChangedCells, action: Action, p: {
  accountId: string;
  sessionId: string;
  fingerprint: Uint8Array;
}): Promise<void> {
  await change(cells, LANE_COUNT, action, "open_customer_page", p.accountId, p.sessionId, p.fingerprint);
}

export type OwnHoldsRow = {
  id: string;
  account_id: string;
};

export async function ownHolds(cell: FunctionCaller, p: {
  serverId: string;
  from: number;
  to: number;
}): Promise<OwnHoldsRow[]> {
  return await cell.call<OwnHoldsRow>("own_holds", p.serverId, p.from, p.to);
}

export type ProbeWritesRow = {
  clock: Date;
};

export async function probeWrites(cell: FunctionCaller): Promise<ProbeWritesRow[]> {
  return await cell.call<ProbeWritesRow>("probe_writes");
}

export async function proveOperator(cell: FunctionCaller, p: {
  caller: string;
}): Promise<void> {
  await cell.call("prove_operator", p.caller);
}

export async function provePerson(cell: FunctionCaller, p: {
  caller: string;
}): Promise<void> {
  await cell.call("prove_person", p.caller);
}

export async function putAutoTopup(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  isEnabled: boolean;
  thresholdMicros: bigint | number;
  amountMicros: bigint | number;
  monthlyMaxMicros: bigint | number;
  currency: string;
}): Promise<AutoTopupView[]> {
  return await change<AutoTopupView>(cells, p.lane, action, "put_auto_topup", p.lane, p.accountId, p.isEnabled, p.thresholdMicros, p.amountMicros, p.monthlyMaxMicros, p.currency);
}

export async function putLimit(cells: ChangedCells, action: Action, p: {
  lane: number;
  ownerId: string;
  limit: string;
}): Promise<LimitView[]> {
  return await change<LimitView>(cells, p.lane, action, "put_limit", p.lane, p.ownerId, p.limit);
}

export async function putPlan(cells: ChangedCells, action: Action, p: {
  name: string;
  rpm: number;
  maxActiveKeys: number;
  maxKeysCreatedPerHour?: number | null | undefined;
}): Promise<Plans[]> {
  return await change<Plans>(cells, LANE_COUNT, action, "put_plan", p.name, p.rpm, p.maxActiveKeys, p.maxKeysCreatedPerHour ?? null);
}

export async function quoteHold(cell: FunctionCaller, p: {
  holds: string;
}): Promise<ItemResult[]> {
  return await cell.call<ItemResult>("quote_hold", p.holds);
}

export async function readAllUsage(cell: FunctionCaller, p: {
  starts: string;
  end: number;
  byAccount: boolean;
  byKey: boolean;
  byModel: boolean;
  byUser: boolean;
  byUpstream: boolean;
  after: string;
  accountId: string;
  rows: bigint | number;
  accounts: number;
  limit: bigint | number;
}): Promise<UsageGroup[]> {
  return await cell.call<UsageGroup>("read_all_usage", p.starts, p.end, p.byAccount, p.byKey, p.byModel, p.byUser, p.byUpstream, p.after, p.accountId, p.rows, p.accounts, p.limit);
}

export type ReadInvitationRow = {
  account_id: string;
};

export async function readInvitation(cell: FunctionCaller, p: {
  lane: number;
  id: string;
  fingerprint: Uint8Array;
  email: string;
}): Promise<ReadInvitationRow[]> {
  return await cell.call<ReadInvitationRow>("read_invitation", p.lane, p.id, p.fingerprint, p.email);
}

export type ReadSharedDataRow = {
  version: bigint;
  plans: string;
  limits: string;
  operators: string;
  prices: string;
  webhooks: string;
};

export async function readSharedData(cell: FunctionCaller): Promise<ReadSharedDataRow[]> {
  return await cell.call<ReadSharedDataRow>("read_shared_data");
}

export async function readUsage(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  starts: string;
  end: number;
  byKey: boolean;
  byModel: boolean;
  byUser: boolean;
  byUpstream: boolean;
  after: string;
  position: string;
  rows: bigint | number;
  limit: bigint | number;
}): Promise<UsageGroup[]> {
  return await cell.call<UsageGroup>("read_usage", p.lane, p.accountId, p.starts, p.end, p.byKey, p.byModel, p.byUser, p.byUpstream, p.after, p.position, p.rows, p.limit);
}

export async function recordAudit(cell: FunctionCaller, p: {
  startedAt: Date;
  entries: bigint | number;
  findings: number;
}): Promise<void> {
  await cell.call("record_audit", p.startedAt, p.entries, p.findings);
}

export type RecordFailuresRow = {
  refused: bigint;
};

export async function recordFailures(cell: FunctionCaller, p: {
  minutes: string;
  calls: string;
  max: number;
}): Promise<RecordFailuresRow[]> {
  return await cell.call<RecordFailuresRow>("record_failures", p.minutes, p.calls, p.max);
}

export type RedeliverRow = {
  renewed: number;
  last: bigint | null;
  last_id: string | null;
};

export async function redeliver(cells: ChangedCells, action: Action, p: {
  webhookId: string;
  types: string;
  lane: number;
  accountId: string;
  eventId: string;
  from?: Date | null | undefined;
  to?: Date | null | undefined;
  maxLane: number;
  after: bigint | number;
  afterId: string;
  limit: number;
  isLogged: boolean;
}): Promise<RedeliverRow[]> {
  return await change<RedeliverRow>(cells, p.lane, action, "redeliver", p.webhookId, p.types, p.lane, p.accountId, p.eventId, p.from ?? null, p.to ?? null, p.maxLane, p.after, p.afterId, p.limit, p.isLogged);
}

export async function refreshFigures(cell: FunctionCaller, p: {
  first: number;
  last: number;
}): Promise<void> {
  await cell.call("refresh_figures", p.first, p.last);
}

export async function refundEntry(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  entryId: string;
  month: number;
  micros: bigint | number;
  reason: string;
  idempotencyKey: string;
}): Promise<PricedLedger[]> {
  return await change<PricedLedger>(cells, p.lane, action, "refund_entry", p.lane, p.accountId, p.entryId, p.month, p.micros, p.reason, p.idempotencyKey);
}

export type RegisterPricesRow = {
  model: string;
  version: number;
};

export async function registerPrices(cell: FunctionCaller, p: {
  items: string;
}): Promise<RegisterPricesRow[]> {
  return await cell.call<RegisterPricesRow>("register_prices", p.items);
}

export type RemoveMemberRow = {
  link_id: string;
};

export async function removeMember(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  personId: string;
}): Promise<RemoveMemberRow[]> {
  return await change<RemoveMemberRow>(cells, p.lane, action, "remove_member", p.lane, p.accountId, p.personId);
}

export async function removeServers(cell: FunctionCaller, p: {
  serverId?: string | null | undefined;
}): Promise<void> {
  await cell.call("remove_servers", p.serverId ?? null);
}

export async function reportDepleted(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  requiredMicros: bigint | number;
}): Promise<number> {
  return (await cell.call<{ report_depleted: number }>("report_depleted", p.lane, p.accountId, p.requiredMicros))[0]!.report_depleted;
}

export type ReportLeaksRow = {
  fingerprint: string;
  key_id: string;
  account_id: string;
  revoked_keys: number;
};

export async function reportLeaks(cells: ChangedCells, action: Action, p: {
  lane: number;
  leaks: string;
}): Promise<ReportLeaksRow[]> {
  return await change<ReportLeaksRow>(cells, p.lane, action, "report_leaks", p.lane, p.leaks);
}

export type RerateEntriesRow = {
  adjusted: bigint;
  credit_micros: bigint;
  debit_micros: bigint;
  refused: bigint;
  refused_micros: bigint;
  skipped: bigint;
  next_seq: bigint | null;
};

export async function rerateEntries(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  first: bigint | number;
  end: bigint | number;
  model: string;
  rates: string;
  cause: string;
  reason: string;
  apply: boolean;
  limit: number;
}): Promise<RerateEntriesRow[]> {
  return await change<RerateEntriesRow>(cells, p.lane, action, "rerate_entries", p.lane, p.accountId, p.first, p.end, p.model, p.rates, p.cause, p.reason, p.apply, p.limit);
}

export async function resumeAutoTopup(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
}): Promise<void> {
  await cell.call("resume_auto_topup", p.lane, p.accountId);
}

export async function revokeKey(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
}): Promise<KeyView[]> {
  return await change<KeyView>(cells, p.lane, action, "revoke_key", p.lane, p.id);
}

export async function revokeOperator(cells: ChangedCells, action: Action, p: {
  id: string;
}): Promise<OperatorView[]> {
  return await change<OperatorView>(cells, LANE_COUNT, action, "revoke_operator", p.id);
}

export async function rotateKey(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  fingerprint: Uint8Array;
  visibleStart: string;
  visibleEnd: string;
  overlapSeconds: number;
}): Promise<KeyView[]> {
  return await change<KeyView>(cells, p.lane, action, "rotate_key", p.lane, p.id, p.fingerprint, p.visibleStart, p.visibleEnd, p.overlapSeconds);
}

export async function rotateWebhook(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
  overlapSeconds: number;
}): Promise<WebhookView> {
  return (await change<WebhookView>(cells, p.lane, action, "rotate_webhook", p.lane, p.accountId, p.id, p.overlapSeconds))[0] as WebhookView;
}

export type SchemaVersionRow = {
  version: number;
  release: string;
  oldest_release: string;
};

export async function schemaVersion(cell: FunctionCaller): Promise<SchemaVersionRow[]> {
  return await cell.call<SchemaVersionRow>("schema_version");
}

export async function searchAccounts(cell: FunctionCaller, p: {
  field: string;
  search: string;
  after: string;
  afterId: string;
  limit: number;
}): Promise<FoundAccounts[]> {
  return await cell.call<FoundAccounts>("search_accounts", p.field, p.search, p.after, p.afterId, p.limit);
}

export async function searchKeyNames(cell: FunctionCaller, p: {
  search: string;
  after: string;
  afterId: string;
  rows: number;
  limit: number;
}): Promise<FoundKeys[]> {
  return await cell.call<FoundKeys>("search_key_names", p.search, p.after, p.afterId, p.rows, p.limit);
}

export async function searchKeys(cell: FunctionCaller, p: {
  id: string;
  start: string;
  end: string;
  name: string;
  after: string;
  limit: number;
}): Promise<FoundKeys[]> {
  return await cell.call<FoundKeys>("search_keys", p.id, p.start, p.end, p.name, p.after, p.limit);
}

export async function searchNames(cell: FunctionCaller, p: {
  search: string;
  after: string;
  afterId: string;
  rows: number;
  limit: number;
}): Promise<FoundAccounts[]> {
  return await cell.call<FoundAccounts>("search_names", p.search, p.after, p.afterId, p.rows, p.limit);
}

export type SecondsOfClockRow = {
  seconds: bigint;
};

export async function secondsOfClock(cell: FunctionCaller): Promise<SecondsOfClockRow[]> {
  return await cell.call<SecondsOfClockRow>("seconds_of_clock");
}

export type ServiceFiguresRow = {
  servers: bigint;
  generations: bigint;
  held_micros: bigint;
};

export async function serviceFigures(cell: FunctionCaller): Promise<ServiceFiguresRow[]> {
  return await cell.call<ServiceFiguresRow>("service_figures");
}

export async function setAccountPlan(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  plan: string;
}): Promise<AccountViews[]> {
  return await change<AccountViews>(cells, p.lane, action, "set_account_plan", p.lane, p.id, p.plan);
}

export async function setAccountPrices(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  model: string;
  discount?: number | null | undefined;
  rates?: string | null | undefined;
}): Promise<AccountPriceView[]> {
  return await change<AccountPriceView>(cells, p.lane, action, "set_account_prices", p.lane, p.accountId, p.model, p.discount ?? null, p.rates ?? null);
}

export async function setAccountSuspended(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  suspended: boolean;
}): Promise<AccountViews[]> {
  return await change<AccountViews>(cells, p.lane, action, "set_account_suspended", p.lane, p.id, p.suspended);
}

export async function setAutoTopupPage(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  currency: string;
  customerId: string;
  replaced?: string | null | undefined;
  pageId?: string | null | undefined;
  pageUrl?: string | null | undefined;
}): Promise<AutoTopupView[]> {
  return await cell.call<AutoTopupView>("set_auto_topup_page", p.lane, p.accountId, p.currency, p.customerId, p.replaced ?? null, p.pageId ?? null, p.pageUrl ?? null);
}

export async function setKeyLimit(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  rateLimitRpm?: number | null | undefined;
}): Promise<KeyView[]> {
  return await change<KeyView>(cells, p.lane, action, "set_key_limit", p.lane, p.id, p.rateLimitRpm ?? null);
}

export type SetMemberRoleRow = {
  person_id: string;
  email: string;
  role: "viewer" | "developer" | "billing" | "owner";
  joined_at: Date;
};

export async function setMemberRole(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  personId: string;
  role: string;
}): Promise<SetMemberRoleRow[]> {
  return await change<SetMemberRoleRow>(cells, p.lane, action, "set_member_role", p.lane, p.accountId, p.personId, p.role);
}

export async function setOperatorRole(cells: ChangedCells, action: Action, p: {
  id: string;
  role: string;
}): Promise<OperatorView[]> {
  return await change<OperatorView>(cells, LANE_COUNT, action, "set_operator_role", p.id, p.role);
}

export async function setTopupPage(cell: FunctionCaller, p: {
  lane: number;
  id: string;
  pageId: string;
  pageUrl: string;
}): Promise<Topups[]> {
  return await cell.call<Topups>("set_topup_page", p.lane, p.id, p.pageId, p.pageUrl);
}

export async function setTopupPayment(cell: FunctionCaller, p: {
  lane: number;
  id: string;
  paymentId: string;
}): Promise<Topups[]> {
  return await cell.call<Topups>("set_topup_payment", p.lane, p.id, p.paymentId);
}

export type SignInOperatorRow = {
  id: string;
  name: string;
  role: "viewer" | "support" | "finance" | "admin";
};

export async function signInOperator(cell: FunctionCaller, p: {
  issuer: string;
  subject: string;
  email: string;
  fingerprint: Uint8Array;
  requestId: string;
}): Promise<SignInOperatorRow[]> {
  return await cell.call<SignInOperatorRow>("sign_in_operator", p.issuer, p.subject, p.email, p.fingerprint, p.requestId);
}

export type SignInPersonRow = {
  person_id: string;
};

export async function signInPerson(cell: FunctionCaller, p: {
  issuer: string;
  subject: string;
  email: string;
  newId: string;
  sessionId: string;
  fingerprint: Uint8Array;
  userAgent: string;
  address: string;
}): Promise<SignInPersonRow[]> {
  return await cell.call<SignInPersonRow>("sign_in_person", p.issuer, p.subject, p.email, p.newId, p.sessionId, p.fingerprint, p.userAgent, p.address);
}

export async function sortAccounts(cell: FunctionCaller, p: {
  sort: string;
  state: string;
  below?: bigint | number | null | undefined;
  after: string;
  afterId: string;
  limit: number;
}): Promise<FoundAccounts[]> {
  return await cell.call<FoundAccounts>("sort_accounts", p.sort, p.state, p.below ?? null, p.after, p.afterId, p.limit);
}

export type StoreAttemptsRow = {
  webhook_id: string;
  revision: number;
  reason: string;
};

export async function storeAttempts(cell: FunctionCaller, p: {
  attempts: string;
}): Promise<StoreAttemptsRow[]> {
  return await cell.call<StoreAttemptsRow>("store_attempts", p.attempts);
}

export type StoredUsageRow = {
  fingerprint: string;
  next: string | null;
};

export async function storedUsage(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  end: number;
  position: string;
  limit: number;
}): Promise<StoredUsageRow[]> {
  return await cell.call<StoredUsageRow>("stored_usage", p.lane, p.accountId, p.end, p.position, p.limit);
}

export async function sweep(cell: FunctionCaller, p: {
  lane: number;
}): Promise<bigint> {
  return (await cell.call<{ sweep: bigint }>("sweep", p.lane))[0]!.sweep;
}

export async function sweepEvents(cell: FunctionCaller, p: {
  days: number;
  limit: number;
}): Promise<number> {
  return (await cell.call<{ sweep_events: number }>("sweep_events", p.days, p.limit))[0]!.sweep_events;
}

export async function sweepFailures(cell: FunctionCaller, p: {
  days: number;
  limit: number;
}): Promise<number> {
  return (await cell.call<{ sweep_failures: number }>("sweep_failures", p.days, p.limit))[0]!.sweep_failures;
}

export async function topUpAfterRefusal(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
}): Promise<void> {
  await cell.call("top_up_after_refusal", p.lane, p.accountId);
}

export type TopupChargeRow = {
  is_allowed: boolean;
  customer_id: string;
  method_id: string;
};

export async function topupCharge(cell: FunctionCaller, p: {
  lane: number;
  id: string;
}): Promise<TopupChargeRow[]> {
  return await cell.call<TopupChargeRow>("topup_charge", p.lane, p.id);
}

export type TopupsToPollRow = {
  id: string;
};

export async function topupsToPoll(cell: FunctionCaller, p: {
  limit: number;
}): Promise<TopupsToPollRow[]> {
  return await cell.call<TopupsToPollRow>("topups_to_poll", p.limit);
}

export async function unlinkPerson(cell: FunctionCaller, p: {
  personId: string;
  accountId: string;
  linkId: string;
  isClosed: boolean;
}): Promise<void> {
  await cell.call("unlink_person", p.personId, p.accountId, p.linkId, p.isClosed);
}

export async function unusedKeys(cell: FunctionCaller, p: {
  days: number;
  after: string;
  rows: number;
  limit: number;
}): Promise<FoundKeys[]> {
  return await cell.call<FoundKeys>("unused_keys", p.days, p.after, p.rows, p.limit);
}

export async function updateAccount(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  changes: string;
}): Promise<AccountViews[]> {
  return await change<AccountViews>(cells, p.lane, action, "update_account", p.lane, p.id, p.changes);
}

export async function updateKey(cells: ChangedCells, action: Action, p: {
  lane: number;
  id: string;
  changes: string;
}): Promise<KeyView[]> {
  return await change<KeyView>(cells, p.lane, action, "update_key", p.lane, p.id, p.changes);
}

export async function updateWebhook(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
  changes: string;
}): Promise<WebhookView[]> {
  return await change<WebhookView>(cells, p.lane, action, "update_webhook", p.lane, p.accountId, p.id, p.changes);
}

export type UsePageLinkRow = {
  is_valid: boolean;
};

export async function usePageLink(cell: FunctionCaller, p: {
  link: Uint8Array;
  fingerprint: Uint8Array;
  userAgent: string;
  address: string;
}): Promise<UsePageLinkRow[]> {
  return await cell.call<UsePageLinkRow>("use_page_link", p.link, p.fingerprint, p.userAgent, p.address);
}

export type ViewDeliveriesRow = {
  event_id: string;
  account_id: string;
  seq: bigint;
  type: string;
  created_at: Date;
  created_micros: bigint;
  state: "pending" | "delivered" | "failed";
  attempts: number;
  due_at: Date | null;
  attempted_at: Date | null;
  status: number | null;
  latency_ms: number | null;
  error: string;
  answer: string;
  data: string;
};

export async function viewDeliveries(cell: FunctionCaller, p: {
  webhookId: string;
  state: string;
  beforeMicros: bigint | number;
  beforeId: string;
  limit: number;
}): Promise<ViewDeliveriesRow[]> {
  return await cell.call<ViewDeliveriesRow>("view_deliveries", p.webhookId, p.state, p.beforeMicros, p.beforeId, p.limit);
}

export async function viewKeys(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  id: string;
  before: string;
  limit: number;
  withPlayground?: boolean | undefined;
}): Promise<KeyView[]> {
  return await cell.call<KeyView>("view_keys", p.lane, p.accountId, p.id, p.before, p.limit, p.withPlayground ?? true);
}

export async function viewLimits(cell: FunctionCaller, p: {
  lane: number;
  ownerId: string;
  user: string;
}): Promise<LimitView[]> {
  return await cell.call<LimitView>("view_limits", p.lane, p.ownerId, p.user);
}

export async function viewOperators(cell: FunctionCaller, p: {
  id: string;
  before: string;
  limit: number;
}): Promise<OperatorView[]> {
  return await cell.call<OperatorView>("view_operators", p.id, p.before, p.limit);
}

export async function viewWebhooks(cell: FunctionCaller, p: {
  lane: number;
  accountId: string;
  id: string;
}): Promise<WebhookView[]> {
  return await cell.call<WebhookView>("view_webhooks", p.lane, p.accountId, p.id);
}

export async function warnOfExpiry(cell: FunctionCaller, p: {
  lane: number;
  id: string;
}): Promise<void> {
  await cell.call("warn_of_expiry", p.lane, p.id);
}

export type WatchedAccountsRow = {
  n: bigint;
  seq: bigint | null;
  ended: string | null;
};

export async function watchedAccounts(cell: FunctionCaller, p: {
  lanes: string;
  accountIds: string;
  seqs: string;
  keyIds: string;
}): Promise<WatchedAccountsRow[]> {
  return await cell.call<WatchedAccountsRow>("watched_accounts", p.lanes, p.accountIds, p.seqs, p.keyIds);
}

export type WebhookToTestRow = {
  account_id: string;
  url: string;
  secrets: string;
};

export async function webhookToTest(cells: ChangedCells, action: Action, p: {
  lane: number;
  accountId: string;
  id: string;
}): Promise<WebhookToTestRow[]> {
  return await change<WebhookToTestRow>(cells, p.lane, action, "webhook_to_test", p.lane, p.accountId, p.id);
}

export type WithdrawnKeysRow = {
  key_id: string;
  reason: "revoked_api_key" | "insufficient_scope" | "account_suspended";
};

export async function withdrawnKeys(cell: FunctionCaller, p: {
  seconds: number;
}): Promise<WithdrawnKeysRow[]> {
  return await cell.call<WithdrawnKeysRow>("withdrawn_keys", p.seconds);
}
