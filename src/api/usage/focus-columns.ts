/**
 * The columns of a FOCUS 1.2 file that this export has: all mandatory ones, and those that apply to metered generation. Own
 * columns begin with x_ and come last. Null is an empty cell.
 */
export const FOCUS_COLUMNS = [
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
  "EffectiveCost",
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
  "ServiceSubcategory",
  "SkuId",
  "SkuMeter",
  "SkuPriceDetails",
  "SkuPriceId",
  "x_KeyId",
  "x_Requests",
] as const;

export type FocusRow = Readonly<Record<(typeof FOCUS_COLUMNS)[number], string>>;
