import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import type { FieldErrors } from "../shared/form-dialog.tsx";
import { TextField } from "../shared/text-field.tsx";

/** The profile of an account in a form. */
type ContactForm = Readonly<Record<"name" | "externalId" | "email" | "notes", string>>;

export const NO_CONTACT: ContactForm = { name: "", externalId: "", email: "", notes: "" };

export function contactOf({ name, externalId, email, notes }: Account): ContactForm {
  return { name, externalId, email, notes };
}

export function contactErrors({ name, email }: ContactForm): FieldErrors<ContactForm> {
  return {
    name: name.trim() === "" ? "Enter a name." : undefined,
    email: /^(|[^@\s]+@[^@\s]+)$/.test(email.trim()) ? undefined : "Enter an e-mail address, or nothing.",
  };
}

export function contactPropertiesOf({ name, externalId, email, notes }: ContactForm): ContactForm {
  return { name: name.trim(), externalId: externalId.trim(), email: email.trim(), notes: notes.trim() };
}

type ContactFieldsProps = {
  readonly form: ContactForm;
  readonly errors: FieldErrors<ContactForm>;
  readonly onChange: (part: Partial<ContactForm>) => void;
};

export function ContactFields({ form, errors, onChange }: ContactFieldsProps) {
  return (
    <>
      <TextField label="Name" error={errors.name} value={form.name} maxLength={100} onChange={(name) => onChange({ name })} />
      <TextField
        label="External id"
        hint="The id of the account in another system. No other account has it."
        value={form.externalId}
        maxLength={100}
        onChange={(externalId) => onChange({ externalId })}
      />
      <TextField
        label="E-mail address"
        error={errors.email}
        value={form.email}
        maxLength={254}
        inputMode="email"
        onChange={(email) => onChange({ email })}
      />
      <TextField
        label="Notes"
        hint="For operators: the customer cannot read them."
        value={form.notes}
        maxLength={2000}
        rows={3}
        onChange={(notes) => onChange({ notes })}
      />
    </>
  );
}
