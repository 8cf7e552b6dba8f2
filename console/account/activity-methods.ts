import { LOGGED_METHODS } from "../shared/member-methods.ts";
import { methodOptions } from "../shared/method-text.ts";

/** What only operators change of an account. The page does not contain their service. */
const OPERATOR_METHODS = [
  "CreateAccount",
  "SuspendAccount",
  "ResumeAccount",
  "CloseAccount",
  "CreditAccount",
  "AdjustAccount",
  "SetAccountPlan",
  "SetAccountPrices",
  "SetKeyLimit",
  "RefundEntry",
  "Rerate",
  "ReportLeak",
  "ViewCustomerPage",
];

/** The methods that can be in the activity of an account, with their texts. */
export const ACTIVITY_METHODS = methodOptions([...LOGGED_METHODS, ...OPERATOR_METHODS]);
