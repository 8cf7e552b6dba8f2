import { useState } from "preact/hooks";
import { ROLES } from "../../src/domain/operator.ts";
import { Field } from "../shared/field.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** Each role has the rights of the roles before it. */
export const RIGHTS = {
  viewer: "Reads everything.",
  support: "Also manages accounts, members, keys and limits, and views the pages of customers.",
  finance: "Also moves balances, refunds, sets prices of accounts, exports usage and closes accounts.",
  admin: "Also manages plans, webhooks of operators, and operators.",
} as const;

type CreateOperatorDialogProps = {
  readonly onCreated: (secret: string) => void;
  readonly onClose: () => void;
};

export function CreateOperatorDialog({ onCreated, onClose }: CreateOperatorDialogProps) {
  const api = useApi();
  const [form, setForm] = useState<{ name: string; role: keyof typeof RIGHTS; email: string }>({
    name: "",
    role: "viewer",
    email: "",
  });
  const change = (part: Partial<typeof form>) => setForm((before) => ({ ...before, ...part }));
  const create = async (reason: string) => {
    const { name, role, email } = form;
    const { secret } = await api.createOperator({ name: name.trim(), role, email: email.trim(), reason });
    onCreated(secret);
  };
  return (
    <ReasonDialog
      title="Create operator"
      action="Create operator"
      errors={{ name: form.name.trim() === "" ? "Enter a name." : undefined }}
      onSubmit={create}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <TextField
            label="Name"
            error={errors.name}
            value={form.name}
            maxLength={100}
            onChange={(name) => change({ name })}
          />
          <Field label="Role" hint={RIGHTS[form.role]}>
            {(control) => (
              <select
                {...control}
                value={form.role}
                onChange={(event) => change({ role: event.currentTarget.value as keyof typeof RIGHTS })}
              >
                {ROLES.map((role) => (
                  <option key={role} value={role}>
                    {role}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <TextField
            label="E-mail address"
            hint="For the first sign-in with OpenID Connect. Leave empty if the operator uses only the token."
            value={form.email}
            maxLength={254}
            inputMode="email"
            onChange={(email) => change({ email })}
          />
        </>
      )}
    </ReasonDialog>
  );
}
