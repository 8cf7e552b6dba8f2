import type { AutoTopUp } from "../../gen/vx/v1/top_up_pb.js";
import { Detail, Details } from "./details.tsx";
import { Money, moneyText } from "./money.tsx";

const STATES: Readonly<Record<string, string>> = {
  off: "Off",
  needs_payment_method: "Waits for a payment method",
  ready: "On",
  paying: "A payment is under way",
  monthly_max_reached: "The maximum of this month is reached",
};

/** The settings and the state of automatic top-ups. */
export function AutoTopUpDetails({ auto }: { readonly auto: AutoTopUp }) {
  const { enabled, state, lastFailure } = auto;
  return (
    <Details>
      <Detail name="State">{STATES[state] ?? state}</Detail>
      <Detail name="Last failure">{lastFailure.replaceAll("_", " ")}</Detail>
      {enabled && (
        <>
          <Detail name="When the balance is below">
            <Money micros={auto.thresholdMicros} />
          </Detail>
          <Detail name="Amount">
            <Money micros={auto.amountMicros} />
          </Detail>
          <Detail name="This month">
            {moneyText(auto.monthMicros)} of {moneyText(auto.monthlyMaxMicros)} at most
          </Detail>
          <Detail name="Payment method">{auto.paymentMethod || "None"}</Detail>
          <Detail name="Page">{setupLink(auto)}</Detail>
        </>
      )}
    </Details>
  );
}

/** Opens in another tab: the customer page would forget the key. */
function setupLink({ setupUrl }: AutoTopUp) {
  if (!setupUrl.startsWith("https://")) return undefined;
  return (
    <a href={setupUrl} target="_blank" rel="noopener noreferrer">
      Store a payment method
    </a>
  );
}
