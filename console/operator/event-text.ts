import type { OperatorEvent } from "../../gen/vx/admin/v1/admin_pb.js";
import { listText } from "../shared/detail-text.ts";
import { methodWords } from "../shared/method-text.ts";
import { moneyText, numberText } from "../shared/money.tsx";

/** What a method did, and what a refused call of it tried. */
type Verbs = readonly [done: string, tried: string];

const VERBS: Readonly<Record<string, Verbs>> = {
  CreateAccount: ["Created", "create"],
  UpdateAccount: ["Edited", "edit"],
  SuspendAccount: ["Suspended", "suspend"],
  ResumeAccount: ["Resumed", "resume"],
  CloseAccount: ["Closed", "close"],
  CreditAccount: ["Credited", "credit"],
  AdjustAccount: ["Adjusted", "adjust"],
  PutAutoTopUp: ["Set the automatic top-ups of", "set the automatic top-ups of"],
  SetAccountPlan: ["Changed the plan of", "change the plan of"],
  Rerate: ["Corrected charges of", "correct charges of"],
  RefundEntry: ["Refunded a charge of", "refund a charge of"],
  SetAccountPrices: ["Changed the prices of", "change the prices of"],
  PutPlan: ["Changed", "change"],
  CreateKey: ["Created", "create"],
  UpdateKey: ["Edited", "edit"],
  RotateKey: ["Rotated", "rotate"],
  RevokeKey: ["Revoked", "revoke"],
  ReportLeak: ["Reported a leak of", "report a leak of"],
  SetKeyLimit: ["Limited", "limit"],
  SetLimit: ["Set", "set"],
  RemoveLimit: ["Removed", "remove"],
  CreateWebhook: ["Created", "create"],
  UpdateWebhook: ["Edited", "edit"],
  DeleteWebhook: ["Deleted", "delete"],
  RotateWebhook: ["Rotated the secret of", "rotate the secret of"],
  TestWebhook: ["Tested", "test"],
  Redeliver: ["Sent events again to", "send events again to"],
  CreateOperator: ["Created", "create"],
  RevokeOperator: ["Revoked", "revoke"],
  SetOperatorRole: ["Changed the role of", "change the role of"],
  ViewCustomerPage: ["Viewed the page of", "view the page of"],
  CreateInvitation: ["Invited a person to", "invite a person to"],
  DeleteInvitation: ["Deleted an invitation to", "delete an invitation to"],
  CreateSignUpInvitation: ["Invited a person to sign up", "invite a person to sign up"],
  SignUp: ["Signed up for", "sign up for"],
  AcceptInvitation: ["Joined", "join"],
  LeaveAccount: ["Left", "leave"],
  RenameAccount: ["Renamed", "rename"],
  SetMemberRole: ["Changed the role of a member of", "change the role of a member of"],
  RemoveMember: ["Removed a member of", "remove a member of"],
  CreatePlaygroundKey: ["Created", "create"],
  CreateTopUp: ["Started a top-up for", "start a top-up for"],
  SignIn: ["Signed in", "sign in"],
  SignOut: ["Signed out", "sign out"],
  ExportUsage: ["Exported the usage", "export the usage"],
};

/** Methods about an account whose names do not say so. */
const OF_ACCOUNT: ReadonlySet<string> = new Set([
  "Rerate",
  "RefundEntry",
  "PutAutoTopUp",
  "CreateTopUp",
  "ViewCustomerPage",
  "CreateInvitation",
  "DeleteInvitation",
  "SignUp",
  "AcceptInvitation",
  "SetMemberRole",
  "RemoveMember",
]);

/** "Credited Bäckerei Nord $25.00" */
export function eventText(event: OperatorEvent): string {
  const [done, tried] = VERBS[event.method] ?? [methodWords(event.method), methodWords(event.method)];
  const verb = event.outcome === "ok" ? done : `Tried to ${tried}`;
  return [verb, objectOf(event), newValueOf(event)].filter((text) => text !== "").join(" ");
}

/** The account, or the key, plan or operator. Names are those of now. */
function objectOf({ method, target, targetName, accountId, accountName, details }: OperatorEvent): string {
  if (method.endsWith("Account") || method.startsWith("SetAccount") || OF_ACCOUNT.has(method))
    return accountName || target || "an account";
  if (method.endsWith("Plan")) return `the plan “${target}”`;
  const name = targetName || details.name || target;
  if (method.includes("Operator")) return name === "" ? "an operator" : `the operator “${name}”`;
  if (method.endsWith("Limit") && method !== "SetKeyLimit") return `a limit of ${name || accountName}`;
  if (method.endsWith("Webhook") || method === "Redeliver")
    return accountName === "" ? "a webhook" : `a webhook of ${accountName}`;
  if (!method.includes("Key") && method !== "ReportLeak") return "";
  const key = name === "" || name === accountId ? "a key" : `the key “${name}”`;
  return accountName === "" ? key : `${key} of ${accountName}`;
}

/** The new value. */
function newValueOf({ method, details }: OperatorEvent): string {
  const { amount_micros: micros, plan, rate_limit_rpm: rpm, fields, role } = details;
  if (micros !== undefined && method === "CreditAccount") return moneyText(BigInt(micros));
  if (micros !== undefined) return `${method === "CreateTopUp" ? "of" : "by"} ${moneyText(BigInt(micros))}`;
  if (method === "SetAccountPlan" && plan !== undefined) return `to “${plan}”`;
  if (method === "SetKeyLimit" && rpm !== undefined)
    return rpm === "default" ? "as its plan does" : `to ${numberText(Number(rpm))} calls per minute`;
  if (method === "UpdateAccount" && fields !== undefined) return `(${listText(fields)})`;
  if (role === undefined) return "";
  if (method === "SetMemberRole" || method === "SetOperatorRole") return `to “${role}”`;
  return /^(CreateOperator|CreateInvitation|AcceptInvitation)$/.test(method) ? `with the role “${role}”` : "";
}
