import { useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { ContactFields, contactErrors, contactPropertiesOf, NO_CONTACT } from "./contact-fields.tsx";
import { useApi } from "./operator-session.ts";
import { PlanField } from "./plan-field.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

type CreateAccountDialogProps = {
  readonly onCreated: (account: Account) => void;
  readonly onClose: () => void;
};

export function CreateAccountDialog({ onCreated, onClose }: CreateAccountDialogProps) {
  const api = useApi();
  const [form, setForm] = useState({ ...NO_CONTACT, plan: "" });
  const create = async (reason: string) => {
    const { account } = await api.createAccount({ ...contactPropertiesOf(form), plan: form.plan, reason });
    if (account) onCreated(account);
  };
  return (
    <ReasonDialog title="Create account" action="Create account" errors={contactErrors(form)} onSubmit={create} onClose={onClose}>
      {(errors) => (
        <>
          <ContactFields form={form} errors={errors} onChange={(part) => setForm((before) => ({ ...before, ...part }))} />
          <PlanField value={form.plan} none="Default (free)" onChange={(plan) => setForm((before) => ({ ...before, plan }))} />
        </>
      )}
    </ReasonDialog>
  );
}
