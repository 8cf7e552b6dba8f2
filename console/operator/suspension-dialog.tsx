import type { AccountDialogProps } from "./account-dialog-props.ts";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** Suspends an active account, or ends its suspension. */
export function SuspensionDialog({ account, onDone, onClose }: AccountDialogProps) {
  const api = useApi();
  const { id: accountId, name } = account;
  const suspend = async (reason: string) => {
    await api.suspendAccount({ accountId, reason });
    onDone(`“${name}” is suspended.`);
  };
  const resume = async (reason: string) => {
    await api.resumeAccount({ accountId, reason });
    onDone(`“${name}” is active again.`);
  };
  if (account.state === "active") {
    return (
      <ReasonDialog title={`Suspend “${name}”?`} action="Suspend account" tone="danger" onSubmit={suspend} onClose={onClose}>
        All servers refuse new calls with its keys at once, except those that read its data or revoke keys. Running calls finish
        and are charged. You can resume the account at any time.
      </ReasonDialog>
    );
  }
  return (
    <ReasonDialog title={`Resume “${name}”?`} action="Resume account" onSubmit={resume} onClose={onClose}>
      Its keys work again, unless they were revoked or have expired.
    </ReasonDialog>
  );
}
