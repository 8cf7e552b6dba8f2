/** The columns of FOCUS 1.2 with their feature level, whether they may be null, and their type. */
type FocusColumn = {
  readonly level: "mandatory" | "conditional" | "recommended";
  readonly nullable: boolean;
  readonly type: "string" | "decimal" | "time" | "json";
};

const LINES = `
AvailabilityZone recommended null string
BilledCost mandatory value decimal
BillingAccountId mandatory value string
BillingAccountName mandatory null string
BillingAccountType conditional value string
BillingCurrency mandatory value string
BillingPeriodEnd mandatory value time
BillingPeriodStart mandatory value time
CapacityReservationId conditional null string
CapacityReservationStatus conditional null string
ChargeCategory mandatory value string
ChargeClass mandatory null string
ChargeDescription mandatory null string
ChargeFrequency recommended value string
ChargePeriodEnd mandatory value time
ChargePeriodStart mandatory value time
CommitmentDiscountCategory conditional null string
CommitmentDiscountId conditional null string
CommitmentDiscountName conditional null string
CommitmentDiscountQuantity conditional null decimal
CommitmentDiscountStatus conditional null string
CommitmentDiscountType conditional null string
CommitmentDiscountUnit conditional null string
ConsumedQuantity conditional null decimal
ConsumedUnit conditional null string
ContractedCost mandatory value decimal
ContractedUnitPrice conditional null decimal
EffectiveCost mandatory value decimal
InvoiceId recommended null string
InvoiceIssuerName mandatory value string
ListCost mandatory value decimal
ListUnitPrice conditional null decimal
PricingCategory conditional null string
PricingCurrency conditional null string
PricingCurrencyContractedUnitPrice conditional null decimal
PricingCurrencyEffectiveCost conditional null decimal
PricingCurrencyListUnitPrice conditional null decimal
PricingQuantity mandatory null decimal
PricingUnit mandatory null string
ProviderName mandatory value string
PublisherName mandatory value string
RegionId conditional null string
RegionName conditional null string
ResourceId conditional null string
ResourceName conditional null string
ResourceType conditional null string
ServiceCategory mandatory value string
ServiceName mandatory value string
ServiceSubcategory recommended value string
SkuId conditional null string
SkuMeter conditional null string
SkuPriceDetails conditional null json
SkuPriceId conditional null string
SubAccountId conditional null string
SubAccountName conditional null string
SubAccountType conditional null string
Tags conditional null json`;

export const FOCUS: ReadonlyMap<string, FocusColumn> = new Map(
  LINES.trim()
    .split("\n")
    .map((line) => {
      const [name = "", level, nullable, type] = line.split(" ");
      return [name, { level, nullable: nullable === "null", type } as FocusColumn];
    }),
);
