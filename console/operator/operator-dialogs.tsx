import { useState } from "preact/hooks";
import type { Operator } from "../../gen/vx/admin/v1/admin_pb.js";
import { ROLES, type Role } from "../../src/domain/operator.ts";
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

type RoleFieldProps = { readonly value: Role; readonly onChange: (role: Role) => void };

function RoleField({ value, onChange }: RoleFieldProps) {
  return (
    <Field label="Role" hint={RIGHTS[value]}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.currentTarget.value as Role)}>
          {ROLES.map((role) => (
            <option key={role} value={role}>
              {role}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

type CreateOperatorDialogProps = {
  readonly onCreated: (secret: string) => void;
  readonly onClose: () => void;
};

export function CreateOperatorDialog({ onCreated, onClose }: CreateOperatorDialogProps) {
  const api = useApi();
  const [form, setForm] = useState<{ name: string; role: Role; email: string }>({
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
          <TextField label="Name" error={errors.name} value={form.name} maxLength={100} onChange={(name) => change({ name })} />
          <RoleField value={form.role} onChange={(role) => change({ role })} />
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

type OperatorRoleDialogProps = {
  readonly operator: Operator;
  readonly isOwn: boolean;
  readonly onSave: (role: Role, reason: string) => Promise<void>;
  readonly onClose: () => void;
};

export function OperatorRoleDialog({ operator, isOwn, onSave, onClose }: OperatorRoleDialogProps) {
  const [role, setRole] = useState(operator.role as Role);
  return (
    <ReasonDialog
      title={`Change the role of “${operator.name}”`}
      action="Change role"
      onSubmit={(reason) => onSave(role, reason)}
      onClose={onClose}
    >
      {() => (
        <>
          <p>The role applies at once, also to open sessions.</p>
          {isOwn && <p>You are this operator. Sign in again to see what the new role permits.</p>}
          <RoleField value={role} onChange={setRole} />
        </>
      )}
    </ReasonDialog>
  );
}
