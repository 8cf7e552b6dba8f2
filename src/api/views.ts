import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  AccountPricesSchema,
  AccountSchema,
  CatalogModelSchema,
  EntryCostSchema,
  ModelUpstreamSchema,
  OperatorEventSchema,
  OperatorSchema,
  PlanSchema,
  PriceVersionSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import type { GrantSchema } from "../../gen/vx/v1/account_pb.js";
import type { ApiKeySchema } from "../../gen/vx/v1/key_pb.js";
import type { LedgerEntrySchema } from "../../gen/vx/v1/ledger_pb.js";
import type { LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import type { ModelSchema } from "../../gen/vx/v1/model_pb.js";
import type { PricesSchema } from "../../gen/vx/v1/prices_pb.js";
import { maskKey } from "../domain/credentials.ts";
import { generationIdOf } from "../domain/ids.ts";
import type { Model, UpstreamSettings } from "../domain/model.ts";
import { formatMicros } from "../domain/money.ts";
import { QUARTER_MS } from "../domain/periods.ts";
import type { Prices, Rates } from "../domain/price.ts";
import { fromScopeBits } from "../domain/scope.ts";
import { inputTokensOf, outputTokensOf } from "../domain/usage.ts";
import type { AccountRow, GrantRow } from "../store/accounts.ts";
import type { KeyRow } from "../store/keys.ts";
import { type EntryRow, ratesOfEntry, usageOfEntry } from "../store/ledger.ts";
import { type LimitOwner, type LimitRow, limitsOfKey } from "../store/limits.ts";
import type { EventRow } from "../store/operator-log.ts";
import type { OperatorRow } from "../store/operators.ts";
import type { PlanCounts, PlanRow } from "../store/plans.ts";
import { type AccountPriceRow, type PriceRow, pricesOfRow } from "../store/prices.ts";
import type { UsageSum } from "../store/usage-sums.ts";

/** Converts rows of the store and models of the catalog to messages of the API. */

export function viewKey(row: KeyRow): MessageInitShape<typeof ApiKeySchema> {
  return {
    id: row.id,
    name: row.name,
    maskedKey: maskKey(row.visible_start, row.visible_end),
    plan: row.plan,
    scopes: fromScopeBits(row.scopes),
    state: row.state,
    rateLimitRpm: row.rpm,
    createdAt: timestampFromDate(row.created_at),
    ...(row.revoked_at ? { revokedAt: timestampFromDate(row.revoked_at) } : {}),
    ...(row.expires_at ? { expiresAt: timestampFromDate(row.expires_at) } : {}),
    ...(row.last_used_at ? { lastUsedAt: timestampFromDate(row.last_used_at) } : {}),
    models: row.models?.split(",") ?? [],
    allowedCidrs: row.allowed_cidrs?.split(",") ?? [],
    limits: limitsOfKey(row.limits).map((limit) => viewLimit(limit, { kind: "key", id: row.id })),
    ...(row.previous_expires_at ? { previousExpiresAt: timestampFromDate(row.previous_expires_at) } : {}),
  };
}

export function viewAccount(row: AccountRow, grants: readonly GrantRow[] = []): MessageInitShape<typeof AccountSchema> {
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    balanceMicros: row.balance_micros,
    balance: formatMicros(row.balance_micros),
    heldMicros: row.held_micros,
    owedMicros: row.owed_micros,
    spentTodayMicros: row.day_micros,
    spentMonthMicros: row.month_micros,
    createdAt: timestampFromDate(row.created_at),
    externalId: row.external_id,
    email: row.email,
    notes: row.notes,
    state: accountStateOf(row),
    ...(row.low_balance_micros === null ? {} : { lowBalanceMicros: row.low_balance_micros }),
    ...(row.suspended_at ? { suspendedAt: timestampFromDate(row.suspended_at) } : {}),
    ...(row.closed_at ? { closedAt: timestampFromDate(row.closed_at) } : {}),
    grants: grants.map(viewGrant),
  };
}

export function viewGrant(row: GrantRow): MessageInitShape<typeof GrantSchema> {
  return {
    id: row.entry_id,
    amountMicros: row.amount_micros,
    remainingMicros: row.rest_micros,
    promotional: row.is_promotional,
    ...(row.expires_at ? { expiresAt: timestampFromDate(row.expires_at) } : {}),
  };
}

export function accountStateOf({ suspended_at, closed_at }: Pick<AccountRow, "suspended_at" | "closed_at">) {
  if (closed_at) return "closed";
  return suspended_at ? "suspended" : "active";
}

export function viewOperator(row: OperatorRow): MessageInitShape<typeof OperatorSchema> {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    state: row.state,
    createdAt: timestampFromDate(row.created_at),
    ...(row.revoked_at ? { revokedAt: timestampFromDate(row.revoked_at) } : {}),
    ...(row.last_used_at ? { lastUsedAt: timestampFromDate(row.last_used_at) } : {}),
    email: row.email,
    identityBound: row.identity_bound,
  };
}

export function viewOperatorEvent(
  row: EventRow,
  names: ReadonlyMap<string, string>,
): MessageInitShape<typeof OperatorEventSchema> {
  return {
    id: `evt_${row.lane}_${row.seq}`,
    createdAt: timestampFromDate(row.created_at),
    actorId: row.actor_id,
    actorName: row.actor_name,
    method: row.method,
    target: row.target,
    accountId: row.account_id,
    reason: row.reason,
    outcome: row.outcome,
    details: row.details,
    requestId: row.request_id,
    accountName: names.get(row.account_id) ?? "",
    targetName: row.target === row.account_id ? "" : (names.get(row.target) ?? ""),
  };
}

export function viewLimit(row: LimitRow, owner: LimitOwner): MessageInitShape<typeof LimitSchema> {
  const ofPlan = owner.kind === "plan" || row.owner_id !== row.subject_id;
  return {
    id: row.id,
    metric: row.metric,
    window: row.period,
    amount: row.amount,
    model: row.model,
    per: row.per_user ? "user" : "",
    ...(row.temporary_amount === null ? {} : { temporaryAmount: row.temporary_amount }),
    ...(row.temporary_until ? { temporaryUntil: timestampFromDate(row.temporary_until) } : {}),
    owner: ofPlan ? "plan" : row.owner_id.startsWith("acct_") ? "account" : "key",
    ownerId: row.owner_id,
    spent: row.spent,
    held: row.held,
    remaining: row.valid_amount > row.spent + row.held ? row.valid_amount - row.spent - row.held : 0n,
    ...(row.resets_at ? { resetsAt: timestampFromDate(row.resets_at) } : {}),
    ...(row.counted_since ? { countedSince: timestampFromDate(row.counted_since) } : {}),
    setByOperator: row.is_of_operator,
  };
}

export function viewPlan(row: PlanRow, counts?: PlanCounts): MessageInitShape<typeof PlanSchema> {
  return {
    name: row.name,
    rpm: row.rpm,
    maxActiveKeys: row.max_active_keys,
    maxKeysCreatedPerHour: row.max_keys_created_per_hour,
    ...counts,
  };
}

export function viewEntry(row: EntryRow): MessageInitShape<typeof LedgerEntrySchema> {
  return {
    id: row.id,
    seq: row.seq,
    kind: row.kind,
    amountMicros: row.amount_micros,
    amount: formatMicros(row.amount_micros),
    balanceAfterMicros: row.balance_after_micros,
    balanceAfter: formatMicros(row.balance_after_micros),
    reason: row.reason,
    requestId: row.request_id,
    keyId: row.key_id,
    model: row.model,
    createdAt: timestampFromDate(row.created_at),
    ...(row.kind === "generation" ? viewGeneration(row) : { adjustedEntryId: row.adjusted_id }),
  };
}

/** The fields of an entry that only generations have. Public counts include their details. */
function viewGeneration(row: EntryRow): MessageInitShape<typeof LedgerEntrySchema> {
  const usage = usageOfEntry(row);
  return {
    generationId: generationIdOf(row.id),
    user: row.user_name,
    traceId: row.trace_id,
    priceVersion: row.price_version,
    priceTier: BigInt(row.price_tier),
    priceListVersion: row.price_list_version,
    prices: viewRates(ratesOfEntry(row)),
    inputTokens: BigInt(inputTokensOf(usage)),
    outputTokens: BigInt(outputTokensOf(usage)),
    cachedInputTokens: BigInt(usage.cachedInput),
    cacheWriteTokens: BigInt(usage.cacheWrite),
    cacheWrite1hTokens: BigInt(usage.cacheWrite1h),
    reasoningTokens: BigInt(usage.reasoning),
    imageTokens: BigInt(usage.imageTokens),
    images: BigInt(usage.images),
  };
}

function commonFields(model: Model) {
  return {
    id: model.id,
    ownedBy: model.ownedBy,
    created: BigInt(model.createdSeconds),
    contextWindow: model.contextWindow,
    maxOutputTokens: model.maxOutputTokens,
    inputMicrosPerMillionTokens: model.prices.input,
    outputMicrosPerMillionTokens: model.prices.output,
    prices: viewPrices(model.prices),
    capabilities: [...model.capabilities],
    aliases: [...model.aliases],
  };
}

export function viewModel(model: Model): MessageInitShape<typeof ModelSchema> {
  return {
    ...commonFields(model),
    object: "model",
    type: "model",
    displayName: model.id,
    createdAt: timestampFromDate(new Date(model.createdSeconds * 1_000)),
  };
}

/** For operators: includes the upstreams, but no upstream API key. */
export function viewCatalogModel(model: Model): MessageInitShape<typeof CatalogModelSchema> {
  return { ...commonFields(model), upstreams: model.upstreams.map(viewUpstream) };
}

function viewUpstream(upstream: UpstreamSettings): MessageInitShape<typeof ModelUpstreamSchema> {
  const { kind, weight = 0 } = upstream;
  const cost = upstream.cost ? { cost: viewPrices(upstream.cost) } : {};
  if (upstream.kind === "sandbox") return { kind, weight, ...cost };
  const { baseUrl, model, timeoutMs } = upstream;
  return { kind, baseUrl, model, timeoutMs, weight, ...cost };
}

function viewPrices({ tiers, ...rates }: Prices): MessageInitShape<typeof PricesSchema> {
  return {
    ...viewRates(rates),
    tiers: tiers.map(({ aboveInputTokens, ...ofTier }) => ({
      aboveInputTokens: BigInt(aboveInputTokens),
      ...viewRates(ofTier),
    })),
  };
}

function viewRates(rates: Rates) {
  const { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, image, request } = rates;
  return { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, image, request };
}

export function viewAccountPrices(row: AccountPriceRow): MessageInitShape<typeof AccountPricesSchema> {
  return {
    version: row.version,
    model: row.model,
    effectiveFrom: timestampFromDate(row.effective_from),
    ...(row.discount === null ? {} : { discountBps: row.discount }),
    ...(row.prices === null ? {} : { prices: viewPrices(pricesOfRow({ prices: row.prices })) }),
  };
}

export function viewPriceVersion(row: PriceRow): MessageInitShape<typeof PriceVersionSchema> {
  return {
    model: row.model,
    version: row.version,
    effectiveFrom: timestampFromDate(row.effective_from),
    prices: viewPrices(pricesOfRow(row)),
  };
}

/** The public counts of tokens include their details; the stored ones are disjoint. */
export function inclusiveTokensOf(sum: Pick<UsageSum, "input" | "cached_input" | "cache_write" | "output" | "reasoning">) {
  return { input: sum.input + sum.cached_input + sum.cache_write, output: sum.output + sum.reasoning };
}

/** For operators. The margin counts the charges whose cost is known. */
export function viewMargin(sum: UsageSum) {
  const { upstream_cost_micros: upstreamCostMicros, uncosted_micros: uncostedMicros } = sum;
  const marginMicros = marginOf(sum);
  return {
    upstream: sum.upstream,
    upstreamCostMicros,
    upstreamCost: formatMicros(upstreamCostMicros),
    uncostedMicros,
    marginMicros,
    margin: formatMicros(marginMicros),
  };
}

export function marginOf(sum: Pick<UsageSum, "cost_micros" | "uncosted_micros" | "upstream_cost_micros">): bigint {
  return sum.cost_micros - sum.uncosted_micros - sum.upstream_cost_micros;
}

/** The upstream of a generation and its cost there, for operators. */
export function viewEntryCost(row: EntryRow): MessageInitShape<typeof EntryCostSchema> {
  const { upstream, upstream_cost_micros: upstreamCostMicros } = row;
  if (upstreamCostMicros === null) return { entryId: row.id, upstream };
  return {
    entryId: row.id,
    upstream,
    upstreamCostMicros,
    marginMicros: -row.amount_micros - upstreamCostMicros,
  };
}

export function viewUsage(sum: UsageSum) {
  const tokens = inclusiveTokensOf(sum);
  return {
    start: timestampFromMs(sum.start * QUARTER_MS),
    keyId: sum.key_id,
    model: sum.model,
    user: sum.user_name,
    requests: sum.requests,
    inputTokens: tokens.input,
    cachedInputTokens: sum.cached_input,
    outputTokens: tokens.output,
    reasoningTokens: sum.reasoning,
    cacheWriteTokens: sum.cache_write,
    imageTokens: sum.image_tokens,
    costMicros: sum.cost_micros,
    cost: formatMicros(sum.cost_micros),
  };
}
