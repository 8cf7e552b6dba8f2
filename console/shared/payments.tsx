import { moneyText } from "./money.tsx";
import { Notice } from "./states.tsx";

/** What the states of a payment mean. */
export const PAYMENT_STATES: Readonly<Record<string, string>> = {
  pending: "Not paid yet",
  paid: "Credited",
  failed: "Failed",
  expired: "Not paid in time",
  refunded: "Refunded",
  disputed: "Disputed",
};

/** What an account owes for reversed payments; nothing if it owes nothing. */
export function OwedNotice({ micros }: { readonly micros: bigint }) {
  if (micros === 0n) return null;
  return (
    <Notice tone="warn">
      A payment was refunded or disputed after it was spent: {moneyText(micros)} is owed. Calls that generate are refused until it
      is paid; new credit pays it first.
    </Notice>
  );
}
