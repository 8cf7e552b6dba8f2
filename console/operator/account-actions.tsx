import { useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { useToast } from "../shared/toast.tsx";
import { ActionButton } from "./action-button.tsx";
import { CloseAccountDialog } from "./close-account-dialog.tsx";
import { EditAccountDialog } from "./edit-account-dialog.tsx";
import { MoveBalanceDialog } from "./move-balance-dialog.tsx";
import { SetPlanDialog } from "./set-plan-dialog.tsx";
import { SuspensionDialog } from "./suspension-dialog.tsx";
import { ViewPageDialog } from "./view-page-dialog.tsx";

type AccountActionsProps = { readonly account: Account; readonly onChanged: () => void };

/** What operators can change about an account. */
export function AccountActions({ account, onChanged }: AccountActionsProps) {
  const [open, setOpen] = useState<"credit" | "adjust" | "edit" | "plan" | "suspension" | "view" | "close">();
  const toast = useToast();
  const dialog = {
    account,
    onDone: (text: string) => {
      toast(text);
      onChanged();
    },
    onClose: () => setOpen(undefined),
  };
  const isActive = account.state === "active";
  return (
    <div class="page-actions">
      <ActionButton method="creditAccount" tone="primary" onClick={() => setOpen("credit")}>
        Credit
      </ActionButton>
      <ActionButton method="adjustAccount" onClick={() => setOpen("adjust")}>
        Adjust
      </ActionButton>
      <ActionButton method="viewCustomerPage" onClick={() => setOpen("view")}>
        View customer page
      </ActionButton>
      <ActionButton method="updateAccount" onClick={() => setOpen("edit")}>
        Edit
      </ActionButton>
      <ActionButton method="setAccountPlan" onClick={() => setOpen("plan")}>
        Change plan
      </ActionButton>
      <ActionButton method={isActive ? "suspendAccount" : "resumeAccount"} onClick={() => setOpen("suspension")}>
        {isActive ? "Suspend" : "Resume"}
      </ActionButton>
      <ActionButton method="closeAccount" onClick={() => setOpen("close")}>
        Close account
      </ActionButton>
      {open === "credit" && <MoveBalanceDialog kind="credit" {...dialog} />}
      {open === "adjust" && <MoveBalanceDialog kind="adjust" {...dialog} />}
      {open === "edit" && <EditAccountDialog {...dialog} />}
      {open === "plan" && <SetPlanDialog {...dialog} />}
      {open === "view" && <ViewPageDialog account={account} onClose={dialog.onClose} />}
      {open === "close" && <CloseAccountDialog {...dialog} />}
      {open === "suspension" && <SuspensionDialog {...dialog} />}
    </div>
  );
}
