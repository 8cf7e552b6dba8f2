import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { moneyText } from "./money.tsx";
import { longTimeText } from "./time.tsx";

const DETAIL_NAMES: Readonly<Record<string, string>> = {
  amount_micros: "Amount",
  entry_id: "Ledger entry",
  rate_limit_rpm: "Calls per minute",
  rpm: "Calls per minute",
  fields: "Changed fields",
};

/** Details that are lists. */
const LISTS: readonly string[] = ["fields", "scopes"];

/** A detail of an event, as the viewer reads it. */
export function detailText(name: string, value: string): [name: string, value: string] {
  const shown = DETAIL_NAMES[name] ?? name.replaceAll("_", " ");
  if (LISTS.includes(name)) return [shown, listText(value)];
  if (name.endsWith("_at") && !Number.isNaN(Date.parse(value))) return [shown, longTimeText(timestampFromDate(new Date(value)))];
  return [shown, name.endsWith("_micros") && /^-?\d+$/.test(value) ? moneyText(BigInt(value)) : value];
}

/** "name, external id" */
export function listText(value: string): string {
  return value.replaceAll("_", " ").replaceAll(",", ", ");
}
