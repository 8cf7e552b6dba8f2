import type { Invitation, Member } from "../../gen/vx/account/v1/account_pb.js";
import type {
  Account,
  AccountPrices,
  AccountTopUp,
  AccountUsageRow,
  AuditFinding,
  CatalogModel,
  FoundKey,
  Operator,
  OperatorEvent,
  Plan,
  PriceVersion,
  RerateResponse,
} from "../../gen/vx/admin/v1/admin_pb.js";
import type { Event } from "../../gen/vx/v1/event_pb.js";
import type { Failure, FailureCount } from "../../gen/vx/v1/failure_pb.js";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import type { Prices, PriceTier } from "../../gen/vx/v1/prices_pb.js";
import type { AutoTopUp } from "../../gen/vx/v1/top_up_pb.js";
import type { Delivery, Webhook } from "../../gen/vx/v1/webhook_pb.js";
import { countsCost } from "../domain/limit.ts";
import { formatMicros } from "../domain/money.ts";
import { type Column, formatTime } from "./print.ts";

/** The table columns of each message. */

export const accountColumns: readonly Column<Account>[] = [
  { title: "ID", value: (account) => account.id },
  { title: "NAME", value: (account) => account.name },
  { title: "EXTERNAL ID", value: (account) => account.externalId },
  { title: "STATE", value: (account) => account.state },
  { title: "PLAN", value: (account) => account.plan },
  { title: "BALANCE", value: (account) => account.balance, align: "right" },
  { title: "HELD", value: (account) => formatMicros(account.heldMicros), align: "right" },
  { title: "OWED", value: ({ owedMicros: owed }) => (owed === 0n ? "" : formatMicros(owed)), align: "right" },
  { title: "CREATED", value: (account) => formatTime(account.createdAt) },
];

export const keyColumns: readonly Column<ApiKey>[] = [
  { title: "ID", value: (key) => key.id },
  { title: "NAME", value: (key) => key.name },
  { title: "KEY", value: (key) => key.maskedKey },
  { title: "PLAN", value: (key) => key.plan },
  { title: "SCOPES", value: (key) => key.scopes.join(",") },
  { title: "STATE", value: (key) => key.state },
  { title: "RPM", value: (key) => String(key.rateLimitRpm), align: "right" },
  { title: "CREATED", value: (key) => formatTime(key.createdAt) },
  { title: "EXPIRES", value: (key) => formatTime(key.expiresAt) },
  { title: "LAST USED", value: (key) => formatTime(key.lastUsedAt) },
];

export const webhookColumns: readonly Column<Webhook>[] = [
  { title: "ID", value: (webhook) => webhook.id },
  { title: "URL", value: (webhook) => webhook.url },
  { title: "TYPES", value: (webhook) => webhook.types.join(",") || "all" },
  { title: "STATE", value: (webhook) => webhook.state },
  { title: "REASON", value: (webhook) => webhook.disabledReason },
  { title: "DESCRIPTION", value: (webhook) => webhook.description },
  { title: "CREATED", value: (webhook) => formatTime(webhook.createdAt) },
  { title: "OLD SECRET UNTIL", value: (webhook) => formatTime(webhook.previousExpiresAt) },
];

export const deliveryColumns: readonly Column<Delivery>[] = [
  { title: "EVENT", value: (delivery) => delivery.eventId },
  { title: "TYPE", value: (delivery) => delivery.type },
  { title: "ACCOUNT", value: (delivery) => delivery.accountId },
  { title: "STATE", value: (delivery) => delivery.state },
  { title: "ATTEMPTS", value: (delivery) => String(delivery.attempts), align: "right" },
  { title: "LAST", value: (delivery) => formatTime(delivery.attemptedAt) },
  { title: "NEXT", value: (delivery) => formatTime(delivery.nextAttemptAt) },
  {
    title: "STATUS",
    value: ({ outcome }) => (outcome?.status ? String(outcome.status) : ""),
    align: "right",
  },
  { title: "MS", value: ({ outcome }) => (outcome ? String(outcome.latencyMs) : ""), align: "right" },
  { title: "ERROR", value: ({ outcome }) => outcome?.error ?? "" },
];

export const limitColumns: readonly Column<Limit>[] = [
  { title: "ID", value: (limit) => limit.id },
  { title: "OWNER", value: (limit) => `${limit.owner} ${limit.ownerId}` },
  { title: "METRIC", value: (limit) => limit.metric },
  { title: "WINDOW", value: (limit) => limit.window },
  { title: "MODEL", value: (limit) => limit.model },
  { title: "PER", value: (limit) => limit.per },
  { title: "AMOUNT", value: (limit) => limitAmount(limit, limit.amount), align: "right" },
  {
    title: "UNTIL",
    value: (limit) =>
      limit.temporaryAmount === undefined
        ? ""
        : `${limitAmount(limit, limit.temporaryAmount)} until ${formatTime(limit.temporaryUntil)}`,
  },
  { title: "USED", value: (limit) => limitAmount(limit, limit.spent), align: "right" },
  { title: "HELD", value: (limit) => limitAmount(limit, limit.held), align: "right" },
  { title: "LEFT", value: (limit) => limitAmount(limit, limit.remaining), align: "right" },
  { title: "RESETS", value: (limit) => formatTime(limit.resetsAt) },
  { title: "COUNTED SINCE", value: (limit) => formatTime(limit.countedSince) },
];

function limitAmount({ metric }: Limit, amount: bigint): string {
  return countsCost(metric) ? formatMicros(amount) : String(amount);
}

export const foundKeyColumns: readonly Column<FoundKey>[] = [
  { title: "ID", value: ({ apiKey }) => apiKey?.id ?? "" },
  { title: "NAME", value: ({ apiKey }) => apiKey?.name ?? "" },
  { title: "KEY", value: ({ apiKey }) => apiKey?.maskedKey ?? "" },
  { title: "STATE", value: ({ apiKey }) => apiKey?.state ?? "" },
  { title: "ACCOUNT", value: (key) => key.accountId },
  { title: "ACCOUNT NAME", value: (key) => key.accountName },
  { title: "CREATED", value: ({ apiKey }) => formatTime(apiKey?.createdAt) },
  { title: "LAST USED", value: ({ apiKey }) => formatTime(apiKey?.lastUsedAt) },
];

export const operatorColumns: readonly Column<Operator>[] = [
  { title: "ID", value: (operator) => operator.id },
  { title: "NAME", value: (operator) => operator.name },
  { title: "ROLE", value: (operator) => operator.role },
  { title: "STATE", value: (operator) => operator.state },
  { title: "CREATED", value: (operator) => formatTime(operator.createdAt) },
  { title: "REVOKED", value: (operator) => formatTime(operator.revokedAt) },
  { title: "LAST USED", value: (operator) => formatTime(operator.lastUsedAt) },
  { title: "EMAIL", value: (operator) => operator.email },
];

export const memberColumns: readonly Column<Member>[] = [
  { title: "ID", value: (member) => member.personId },
  { title: "ROLE", value: (member) => member.role },
  { title: "EMAIL", value: (member) => member.email },
  { title: "JOINED", value: (member) => formatTime(member.joinedAt) },
];

export const invitationColumns: readonly Column<Invitation>[] = [
  { title: "INVITATION", value: (invitation) => invitation.id },
  { title: "ROLE", value: (invitation) => invitation.role },
  { title: "EMAIL", value: (invitation) => invitation.email },
  { title: "EXPIRES", value: (invitation) => formatTime(invitation.expiresAt) },
];

export const topUpColumns: readonly Column<AccountTopUp>[] = [
  { title: "ID", value: ({ topup }) => topup?.id ?? "" },
  { title: "ACCOUNT", value: (row) => row.accountId },
  { title: "STATE", value: ({ topup }) => topup?.state ?? "" },
  { title: "AMOUNT", value: ({ topup }) => topup?.amount ?? "", align: "right" },
  { title: "REFUNDED", value: ({ topup }) => formatMicros(topup?.refundedMicros ?? 0n), align: "right" },
  { title: "DISPUTED", value: ({ topup }) => formatMicros(topup?.disputedMicros ?? 0n), align: "right" },
  { title: "AUTOMATIC", value: ({ topup }) => (topup?.automatic ? "yes" : "") },
  { title: "PAYMENT", value: (row) => row.paymentId },
  { title: "PROBLEM", value: (row) => row.problem || (row.topup?.failure ?? "") },
  { title: "CREATED", value: ({ topup }) => formatTime(topup?.createdAt) },
];

export const autoTopUpColumns: readonly Column<AutoTopUp>[] = [
  { title: "STATE", value: (auto) => auto.state.replaceAll("_", " ") },
  { title: "BELOW", value: (auto) => formatMicros(auto.thresholdMicros), align: "right" },
  { title: "AMOUNT", value: (auto) => formatMicros(auto.amountMicros), align: "right" },
  { title: "THIS MONTH", value: (auto) => formatMicros(auto.monthMicros), align: "right" },
  { title: "MONTHLY MAX", value: (auto) => formatMicros(auto.monthlyMaxMicros), align: "right" },
  { title: "PAYMENT METHOD", value: (auto) => auto.paymentMethod },
  { title: "FAILURES", value: (auto) => String(auto.failures), align: "right" },
  { title: "LAST FAILURE", value: (auto) => auto.lastFailure },
  { title: "PAGE FOR THE PAYMENT METHOD", value: (auto) => auto.setupUrl },
];

export const accountEventColumns: readonly Column<Event>[] = [
  { title: "TIME", value: (event) => formatTime(event.createdAt) },
  { title: "ACCOUNT", value: (event) => event.accountId },
  { title: "TYPE", value: (event) => event.type },
  { title: "ID", value: (event) => event.id },
  {
    title: "DATA",
    value: ({ data = {} }) =>
      Object.entries(data)
        .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(" "),
  },
];

export const failureColumns: readonly Column<Failure>[] = [
  { title: "TIME", value: (failure) => formatTime(failure.time) },
  { title: "STATUS", value: ({ status }) => (status === 0 ? "" : String(status)), align: "right" },
  { title: "CODE", value: (failure) => failure.code },
  { title: "METHOD", value: (failure) => failure.method },
  { title: "MODEL", value: (failure) => failure.model },
  { title: "UPSTREAM", value: (failure) => failure.upstream },
  { title: "KEY", value: (failure) => failure.keyId },
  { title: "MS", value: ({ code, latencyMs }) => (code === "" ? "" : String(latencyMs)), align: "right" },
  { title: "REQUEST ID", value: (failure) => failure.requestId },
  {
    title: "MESSAGE",
    value: ({ message, omitted }) => (omitted === 0 ? message : `${omitted} more calls failed in this minute`),
  },
];

export const failureCountColumns: readonly Column<FailureCount>[] = [
  { title: "START", value: (count) => formatTime(count.start) },
  { title: "CODE", value: ({ code }) => (code === "" ? "(not listed)" : code) },
  { title: "CALLS", value: ({ calls }) => String(calls), align: "right" },
];

export const eventColumns: readonly Column<OperatorEvent>[] = [
  { title: "TIME", value: (event) => formatTime(event.createdAt) },
  { title: "OPERATOR", value: (event) => event.actorName },
  { title: "METHOD", value: (event) => event.method },
  { title: "TARGET", value: (event) => event.target },
  { title: "OUTCOME", value: (event) => event.outcome },
  {
    title: "DETAILS",
    value: ({ details }) =>
      Object.entries(details)
        .map(([name, value]) => `${name}=${value}`)
        .join(" "),
  },
  { title: "REASON", value: (event) => event.reason },
];

export const planColumns: readonly Column<Plan>[] = [
  { title: "NAME", value: (plan) => plan.name },
  { title: "RPM", value: (plan) => String(plan.rpm), align: "right" },
  { title: "MAX ACTIVE KEYS", value: (plan) => String(plan.maxActiveKeys), align: "right" },
  {
    title: "MAX KEYS CREATED PER HOUR",
    value: (plan) => String(plan.maxKeysCreatedPerHour),
    align: "right",
  },
];

export const listedPlanColumns: readonly Column<Plan>[] = [
  ...planColumns,
  { title: "ACCOUNTS", value: (plan) => String(plan.accounts), align: "right" },
  { title: "ACTIVE KEYS", value: (plan) => String(plan.activeKeys), align: "right" },
];

export const modelColumns: readonly Column<CatalogModel>[] = [
  { title: "ID", value: (model) => model.id },
  { title: "CONTEXT", value: (model) => String(model.contextWindow), align: "right" },
  { title: "MAX OUTPUT", value: (model) => String(model.maxOutputTokens), align: "right" },
  ...priceColumns<CatalogModel>(({ prices }) => prices),
  { title: "CAPABILITIES", value: (model) => model.capabilities.join(",") },
  { title: "ALIASES", value: (model) => model.aliases.join(",") },
  { title: "UPSTREAMS", value: (model) => model.upstreams.map(({ kind }) => kind).join(",") },
];

export const priceVersionColumns: readonly Column<PriceVersion>[] = [
  { title: "VERSION", value: ({ version }) => String(version), align: "right" },
  { title: "EFFECTIVE FROM", value: ({ effectiveFrom }) => formatTime(effectiveFrom) },
  ...priceColumns<PriceVersion>(({ prices }) => prices),
];

export const accountPriceColumns: readonly Column<AccountPrices>[] = [
  { title: "VERSION", value: ({ version }) => String(version), align: "right" },
  { title: "EFFECTIVE FROM", value: ({ effectiveFrom }) => formatTime(effectiveFrom) },
  { title: "MODEL", value: ({ model }) => model || "all" },
  { title: "DISCOUNT", value: discountText, align: "right" },
  ...priceColumns<AccountPrices>(({ prices }) => prices),
];

/** A version without a discount and prices ends those before. */
function discountText({ discountBps, prices }: AccountPrices): string {
  if (discountBps !== undefined) return `${discountBps / 100} %`;
  return prices ? "" : "removed";
}

export const entryColumns: readonly Column<LedgerEntry>[] = [
  { title: "SEQ", value: (entry) => String(entry.seq), align: "right" },
  { title: "TIME", value: (entry) => formatTime(entry.createdAt) },
  { title: "KIND", value: (entry) => entry.kind },
  { title: "AMOUNT", value: (entry) => entry.amount, align: "right" },
  { title: "BALANCE", value: (entry) => entry.balanceAfter, align: "right" },
  { title: "KEY", value: (entry) => entry.keyId },
  { title: "MODEL", value: (entry) => entry.model },
  { title: "INPUT", value: (entry) => tokens(entry, entry.inputTokens), align: "right" },
  { title: "OUTPUT", value: (entry) => tokens(entry, entry.outputTokens), align: "right" },
  { title: "REASON", value: (entry) => entry.reason },
];

export const usageColumns: readonly Column<AccountUsageRow>[] = [
  { title: "START", value: ({ usage }) => formatTime(usage?.start) },
  { title: "ACCOUNT", value: ({ accountId }) => accountId },
  { title: "ACCOUNT NAME", value: ({ accountName }) => accountName },
  { title: "KEY", value: ({ usage }) => usage?.keyId ?? "" },
  { title: "KEY NAME", value: ({ keyName }) => keyName },
  { title: "MODEL", value: ({ usage }) => usage?.model ?? "" },
  { title: "USER", value: ({ usage }) => usage?.user ?? "" },
  { title: "REQUESTS", value: ({ usage }) => String(usage?.requests ?? 0), align: "right" },
  { title: "INPUT", value: ({ usage }) => String(usage?.inputTokens ?? 0), align: "right" },
  { title: "OUTPUT", value: ({ usage }) => String(usage?.outputTokens ?? 0), align: "right" },
  { title: "COST", value: ({ usage }) => usage?.cost ?? "", align: "right" },
];

export const marginColumns: readonly Column<AccountUsageRow>[] = [
  { title: "START", value: ({ usage }) => formatTime(usage?.start) },
  { title: "ACCOUNT", value: ({ accountId }) => accountId },
  { title: "ACCOUNT NAME", value: ({ accountName }) => accountName },
  { title: "KEY", value: ({ usage }) => usage?.keyId ?? "" },
  { title: "MODEL", value: ({ usage }) => usage?.model ?? "" },
  { title: "USER", value: ({ usage }) => usage?.user ?? "" },
  { title: "UPSTREAM", value: ({ upstream }) => upstream },
  { title: "REQUESTS", value: ({ usage }) => String(usage?.requests ?? 0), align: "right" },
  { title: "CHARGES", value: ({ usage }) => usage?.cost ?? "", align: "right" },
  { title: "COST", value: ({ upstreamCost }) => upstreamCost, align: "right" },
  { title: "MARGIN", value: ({ margin }) => margin, align: "right" },
  {
    title: "CHARGES WITHOUT COST",
    value: ({ uncostedMicros: micros }) => (micros === 0n ? "" : formatMicros(micros)),
    align: "right",
  },
];

export const rerateColumns: readonly Column<RerateResponse>[] = [
  { title: "ACCOUNT", value: ({ accountId }) => accountId },
  { title: "ACCOUNT NAME", value: ({ accountName }) => accountName },
  { title: "CHARGES", value: ({ adjusted }) => String(adjusted), align: "right" },
  { title: "GETS BACK", value: ({ creditMicros }) => formatMicros(creditMicros), align: "right" },
  { title: "OWES", value: ({ debitMicros }) => formatMicros(debitMicros), align: "right" },
  { title: "NOT COVERED", value: ({ refused }) => (refused === 0n ? "" : String(refused)), align: "right" },
  {
    title: "NOT COVERED AMOUNT",
    value: ({ refusedMicros }) => (refusedMicros === 0n ? "" : formatMicros(refusedMicros)),
    align: "right",
  },
  { title: "OWN PRICES", value: ({ skipped }) => (skipped === 0n ? "" : String(skipped)), align: "right" },
];

export const findingColumns: readonly Column<AuditFinding>[] = [
  { title: "ACCOUNT", value: (finding) => finding.accountId },
  { title: "RULE", value: (finding) => finding.rule },
  { title: "DETAIL", value: (finding) => finding.detail },
];

/** One column per price. */
function priceColumns<T>(pricesOf: (row: T) => Prices | undefined): readonly Column<T>[] {
  const column = (title: string, price: (prices: Prices) => bigint): Column<T> => ({
    title,
    value: (row) => {
      const prices = pricesOf(row);
      return prices ? formatMicros(price(prices)) : "";
    },
    align: "right",
  });
  return [
    column("INPUT / 1M", ({ input }) => input),
    column("CACHED / 1M", ({ cachedInput }) => cachedInput),
    column("CACHE WRITE / 1M", ({ cacheWrite }) => cacheWrite),
    column("1 H / 1M", ({ cacheWrite1h }) => cacheWrite1h),
    column("OUTPUT / 1M", ({ output }) => output),
    column("REASONING / 1M", ({ reasoning }) => reasoning),
    column("IMAGE", ({ image }) => image),
    column("REQUEST", ({ request }) => request),
    { title: "TIERS", value: (row) => pricesOf(row)?.tiers.map(tierText).join("; ") ?? "" },
  ];
}

function tierText({ aboveInputTokens, input, output }: PriceTier): string {
  return `above ${aboveInputTokens}: ${formatMicros(input)} in, ${formatMicros(output)} out`;
}

/** Entries that are not generations have no tokens. */
function tokens(entry: LedgerEntry, count: bigint): string {
  return entry.kind === "generation" ? String(count) : "";
}
