import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { Badge } from "../shared/states.tsx";

export function AccountState({ account: { state } }: { readonly account: Account }) {
  return <Badge tone={state === "active" ? "good" : "bad"}>{state}</Badge>;
}
