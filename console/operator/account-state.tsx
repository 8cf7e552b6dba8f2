import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { StateBadge } from "../shared/states.tsx";

export function AccountState({ account: { state } }: { readonly account: Account }) {
  return <StateBadge tone={state === "active" ? "good" : "bad"} state={state} />;
}
