import { useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { NEW_KEY, NewKeyFields, newKeyErrors, newKeyPropertiesOf } from "../shared/new-key.tsx";
import { useModelIds } from "./limits.tsx";
import { useApi } from "./operator-session.ts";
import { PlanField } from "./plan-field.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";

const HINTS = {
  rpm: "Empty: the limit of the plan.",
  expiry: "The key stops working at this time.",
} as const;

type CreateKeyDialogProps = {
  readonly account: Account;
  readonly onCreated: (secret: string) => void;
  readonly onClose: () => void;
};

export function CreateKeyDialog({ account, onCreated, onClose }: CreateKeyDialogProps) {
  const api = useApi();
  const [form, setForm] = useState(NEW_KEY);
  const models = useModelIds();
  const [plan, setPlan] = useState("");
  const create = async (reason: string) => {
    const request = { accountId: account.id, plan, reason, ...newKeyPropertiesOf(form) };
    const { secret } = await api.createKey(request);
    onCreated(secret);
  };
  return (
    <ReasonDialog
      title={`Create a key of “${account.name}”`}
      action="Create key"
      errors={newKeyErrors(form)}
      onSubmit={create}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <NewKeyFields
            form={form}
            errors={errors}
            onChange={(part) => setForm((before) => ({ ...before, ...part }))}
            hints={HINTS}
            noExpiry="Never"
            models={models}
          />
          <PlanField value={plan} none={`Plan of the account (${account.plan})`} onChange={setPlan} />
        </>
      )}
    </ReasonDialog>
  );
}
