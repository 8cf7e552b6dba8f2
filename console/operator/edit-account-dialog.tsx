import { useState } from "preact/hooks";
import type { AccountDialogProps } from "./account-dialog-props.ts";
import { ContactFields, contactErrors, contactOf, contactPropertiesOf } from "./contact-fields.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** Renames an account, and changes its external id, its e-mail address and its notes. */
export function EditAccountDialog({ account, onDone, onClose }: AccountDialogProps) {
  const api = useApi();
  const [form, setForm] = useState(contactOf(account));
  const save = async (reason: string) => {
    await api.updateAccount({ accountId: account.id, ...changes(form, contactOf(account)), reason });
    onDone("The account is changed.");
  };
  return (
    <ReasonDialog title={`Edit “${account.name}”`} action="Save" errors={contactErrors(form)} onSubmit={save} onClose={onClose}>
      {(errors) => (
        <ContactFields form={form} errors={errors} onChange={(part) => setForm((before) => ({ ...before, ...part }))} />
      )}
    </ReasonDialog>
  );
}

/** Only what the operator changed: another operator may change the rest at the same time. */
function changes(form: ReturnType<typeof contactOf>, before: ReturnType<typeof contactOf>) {
  const changed = Object.entries(contactPropertiesOf(form)).filter(
    ([name, value]) => value !== before[name as keyof typeof before],
  );
  return Object.fromEntries(changed) as Partial<typeof form>;
}
