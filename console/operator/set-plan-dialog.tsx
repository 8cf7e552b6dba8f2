import { useState } from "preact/hooks";
import type { AccountDialogProps } from "./account-dialog-props.ts";
import { useApi } from "./operator-session.ts";
import { PlanField } from "./plan-field.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

export function SetPlanDialog({ account, onDone, onClose }: AccountDialogProps) {
  const api = useApi();
  const [plan, setPlan] = useState(account.plan);
  const save = async (reason: string) => {
    await api.setAccountPlan({ accountId: account.id, plan, reason });
    onDone(`The account is on the plan “${plan}”.`);
  };
  return (
    <ReasonDialog title={`Change the plan of “${account.name}”`} action="Change plan" onSubmit={save} onClose={onClose}>
      {() => (
        <PlanField value={plan} hint={`Active keys on the plan “${account.plan}” move with the account.`} onChange={setPlan} />
      )}
    </ReasonDialog>
  );
}
