import { currency } from "../domain/money.ts";
import { QUARTER_MS } from "../domain/periods.ts";
import { discountedPrice } from "../domain/price.ts";
import type { ExportRow, MovementRow, PricedMeter } from "./export-rows.ts";
import { USAGE_COUNTS } from "./sums.ts";

/**
 * The columns of a FOCUS file that this export has: all mandatory ones, and those that apply to metered generation. Own columns begin
 * with x_ and come last. Null is an empty cell.
 */
const FOCUS_COLUMNS = [
  "BilledCost",
  "BillingAccountId",
  "BillingAccountName",
  "BillingCurrency",
  "BillingPeriodEnd",
  "BillingPeriodStart",
  "ChargeCategory",
  "ChargeClass",
  "ChargeDescription",
  "ChargeFrequency",
  "ChargePeriodEnd",
  "ChargePeriodStart",
  "ConsumedQuantity",
  "ConsumedUnit",
  "ContractedCost",
  "ContractedUnitPrice",
  "EffectiveCost",
  "HostProviderName",
  "InvoiceIssuerName",
  "ListCost",
  "ListUnitPrice",
  "PricingCategory",
  "PricingQuantity",
  "PricingUnit",
  "ProviderName",
  "PublisherName",
  "ServiceCategory",
  "ServiceName",
  "ServiceProviderName",
  "ServiceSubcategory",
  "SkuId",
  "SkuMeter",
  "SkuPriceDetails",
  "SkuPriceId",
  "x_FocusVersion",
  "x_KeyId",
  "x_Requests",
] as const;

const SINCE_1_3: readonly string[] = ["HostProviderName", "ServiceProviderName"];

/** Columns for operators alone. The first meter of a group has the costs of all. */
const COST_COLUMNS = ["x_Upstream", "x_UpstreamCost", "x_UncostedCharges"] as const;

export type FocusRow = Readonly<Record<(typeof FOCUS_COLUMNS | typeof COST_COLUMNS)[number], string>>;

export type FocusFile = {
  readonly productName: string;
  readonly version: "1.2" | "1.3";
  /** Whether the file has the upstreams and their costs. */
  readonly costs: boolean;
};

export function focusColumns({ version, costs }: FocusFile): readonly (keyof FocusRow)[] {
  const columns = FOCUS_COLUMNS.filter((name) => version === "1.3" || !SINCE_1_3.includes(name));
  return costs ? [...columns, ...COST_COLUMNS] : columns;
}

const DAY_QUARTERS = 96;
const DAY_MS = DAY_QUARTERS * QUARTER_MS;
/** Costs have six decimals; tokens × prices per million tokens have six more. */
const COST_DECIMALS = 12;
const MICRO = 10n ** 6n;

/** The sums of one day in UTC with the same account, key, model, prices and, if wanted, upstream. */
type DaySum = { -readonly [Name in keyof ExportRow]: ExportRow[Name] };

/** Collects rows, ordered by account and time, into days: memory holds one day of one account. */
export class FocusDays {
  readonly #file: FocusFile;
  readonly #sums = new Map<string, DaySum>();
  #current = "";

  constructor(file: FocusFile) {
    this.#file = file;
  }

  /** Returns the rows of the day before, if this row starts another one. */
  collect(row: ExportRow): FocusRow[] {
    const day = Math.floor(row.quarter / DAY_QUARTERS);
    const current = `${day} ${row.account_id}`;
    const done = current === this.#current ? [] : this.finish();
    this.#current = current;
    const upstream = this.#file.costs ? row.upstream : "";
    const key = JSON.stringify([row.key_id, row.price_version, row.price_tier, row.price_list_version, row.model, upstream]);
    const sum = this.#sums.get(key);
    if (!sum) this.#sums.set(key, { ...row, quarter: day * DAY_QUARTERS });
    else for (const count of EXPORT_COUNTS) sum[count] += row[count];
    return done;
  }

  finish(): FocusRow[] {
    const rows = [...this.#sums.values()].flatMap((sum) => rowsOfDay(sum, this.#file));
    this.#sums.clear();
    return rows;
  }
}

/** The fields of a row that are added up. */
export const EXPORT_COUNTS = [...USAGE_COUNTS, "cache_write_1h"] as const;

type Meter = {
  name: string;
  unit: string;
  per: bigint;
  quantity: bigint;
  /** That of the model, for everybody. */
  listPrice: bigint;
  /** That of the account, after its discount. */
  price: bigint;
};

function metersOf(sum: DaySum): Meter[] {
  const meter = (name: string, unit: string, per: bigint, quantity: bigint, of: PricedMeter): Meter => ({
    name,
    unit,
    per,
    quantity,
    listPrice: sum[`${of}_list_price`] ?? 0n,
    price: discountedPrice(sum[`${of}_price`] ?? 0n, sum.discount ?? 0),
  });
  const tokens = (name: string, quantity: bigint, of: PricedMeter) => meter(name, "Tokens", MICRO, quantity, of);
  const units = (name: string, quantity: bigint, of: PricedMeter) => meter(name, name, 1n, quantity, of);
  const all = [
    tokens("Input Tokens", sum.input, "input"),
    tokens("Cached Input Tokens", sum.cached_input, "cached_input"),
    tokens("Cache Write Tokens", sum.cache_write - sum.cache_write_1h, "cache_write"),
    tokens("Cache Write Tokens for an Hour", sum.cache_write_1h, "cache_write_1h"),
    tokens("Output Tokens", sum.output, "output"),
    tokens("Reasoning Tokens", sum.reasoning, "reasoning"),
    units("Images", sum.images, "image"),
  ].filter(({ quantity }) => quantity > 0n);
  const requests = units("Requests", sum.requests, "request");
  // Requests without any token still have a row.
  const hasPrice = requests.price > 0n || requests.listPrice > 0n;
  return hasPrice || all.length === 0 ? [...all, requests] : all;
}

/**
 * A row per meter. The first one also has the difference to the charges: each is rounded up to a whole micro, and
 * limited to its hold, so the difference can be negative. Credit covers all usage, so none of it is billed.
 */
function rowsOfDay(sum: DaySum, file: FocusFile): FocusRow[] {
  const meters = metersOf(sum);
  const costAt = (price: bigint, { quantity, per }: Meter) => (quantity * price * MICRO) / per;
  const charged = (meter: Meter) => costAt(meter.price, meter);
  const difference = sum.cost_micros * MICRO - meters.reduce((total, meter) => total + charged(meter), 0n);
  return meters.map((meter, i) => {
    const cost = formatDecimal(charged(meter) + (i === 0 ? difference : 0n), COST_DECIMALS);
    const { quantity, listPrice, price, per, unit, name } = meter;
    const ofAccount = sum.price_list_version > 0 ? `/account-${sum.price_list_version}` : "";
    const tier = sum.price_tier > 0 ? `/above-${sum.price_tier}` : "";
    return {
      ...commonFields(sum, sum.quarter * QUARTER_MS, file),
      BilledCost: "0",
      ContractedCost: cost,
      EffectiveCost: cost,
      ContractedUnitPrice: formatDecimal(price, 6),
      ListCost: formatDecimal(costAt(listPrice, meter), COST_DECIMALS),
      ChargeCategory: "Usage",
      ChargeClass: "",
      ChargeDescription: `${name} of ${sum.model}`,
      ChargeFrequency: "Usage-Based",
      ConsumedQuantity: String(quantity),
      ConsumedUnit: unit,
      ListUnitPrice: formatDecimal(listPrice, 6),
      PricingCategory: "Standard",
      PricingQuantity: formatDecimal(quantity, per === MICRO ? 6 : 0),
      PricingUnit: per === MICRO ? "1000000 Tokens" : unit,
      SkuId: sum.model,
      SkuMeter: name,
      SkuPriceDetails: JSON.stringify({
        x_Model: sum.model,
        x_PriceVersion: String(sum.price_version),
        ...(sum.price_tier > 0 ? { x_AboveInputTokens: String(sum.price_tier) } : {}),
        ...(ofAccount ? { x_PriceListVersion: String(sum.price_list_version) } : {}),
      }),
      SkuPriceId: `${sum.model}/${sum.price_version}${ofAccount}${tier}/${name.replaceAll(" ", "-").toLowerCase()}`,
      x_KeyId: sum.key_id,
      x_Requests: String(sum.requests),
      x_Upstream: sum.upstream,
      x_UpstreamCost: formatDecimal(i === 0 ? sum.upstream_cost_micros : 0n, 6),
      x_UncostedCharges: formatDecimal(i === 0 ? sum.uncosted_micros : 0n, 6),
    };
  });
}

/**
 * A movement of the balance. What customers pay in is billed as a purchase, and becomes effective with the usage that it covers.
 * Promotional credit lowers both costs. Adjustments and expiries are not billed. So the balance of an account is what the rows of
 * purchases bill, minus the effective costs of all rows.
 */
export function focusRowOfMovement(row: MovementRow, file: FocusFile): FocusRow {
  const day = Math.floor(row.created_at.getTime() / DAY_MS) * DAY_MS;
  const category = categoryOf(row);
  const [added, taken] = [formatDecimal(row.amount_micros, 6), formatDecimal(-row.amount_micros, 6)];
  const billed = { Purchase: added, Credit: taken, Adjustment: "0" }[category];
  const isPurchase = category === "Purchase" && row.kind !== "refund";
  return {
    ...commonFields(row, day, file),
    BilledCost: billed,
    ContractedCost: billed,
    EffectiveCost: category === "Purchase" ? "0" : taken,
    ListCost: billed,
    ChargeCategory: category,
    ChargeClass: row.kind === "refund" || row.kind === "adjustment" ? "Correction" : "",
    ChargeDescription: row.reason,
    ChargeFrequency: "One-Time",
    ConsumedQuantity: "",
    ConsumedUnit: "",
    ContractedUnitPrice: isPurchase ? "1" : "",
    ListUnitPrice: isPurchase ? "1" : "",
    PricingCategory: isPurchase ? "Standard" : "",
    PricingQuantity: isPurchase ? added : "",
    PricingUnit: isPurchase ? currency().code : "",
    SkuId: isPurchase ? "credit" : "",
    SkuMeter: isPurchase ? "Credit" : "",
    SkuPriceDetails: "",
    SkuPriceId: isPurchase ? "credit" : "",
    x_KeyId: "",
    x_Requests: "",
    x_Upstream: "",
    x_UpstreamCost: "",
    x_UncostedCharges: "",
  };
}

function categoryOf({ kind, is_promotional: isPromotional }: MovementRow) {
  if (kind === "adjustment" || kind === "expiry") return "Adjustment";
  return isPromotional ? "Credit" : "Purchase";
}

function commonFields(row: { account_id: string; account_name: string }, dayMs: number, { productName, version }: FocusFile) {
  const day = new Date(dayMs);
  const month = (offset: number) => new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + offset));
  return {
    BillingAccountId: row.account_id,
    BillingAccountName: row.account_name,
    BillingCurrency: currency().code,
    BillingPeriodStart: timeText(month(0)),
    BillingPeriodEnd: timeText(month(1)),
    ChargePeriodStart: timeText(day),
    ChargePeriodEnd: timeText(new Date(dayMs + DAY_MS)),
    HostProviderName: productName,
    InvoiceIssuerName: productName,
    ProviderName: productName,
    PublisherName: productName,
    ServiceCategory: "AI and Machine Learning",
    ServiceName: productName,
    ServiceProviderName: productName,
    ServiceSubcategory: "Generative AI",
    x_FocusVersion: version,
  };
}

/** A time in RFC 3339, without fractions of a second. */
export function timeText(time: Date): string {
  return time.toISOString().replace(".000Z", "Z");
}

/** The exact decimal of `units` × 10^-`decimals`, without zeros at the end: (1500n, 3) is "1.5". */
function formatDecimal(units: bigint, decimals: number): string {
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return `${units < 0n ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}
