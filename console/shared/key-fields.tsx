import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Field } from "./field.tsx";
import type { FieldErrors } from "./form-dialog.tsx";
import { TextField } from "./text-field.tsx";

const SCOPES = [
  { id: "generate", text: "Call models, at the cost of the balance" },
  { id: "read", text: "Read models, usage and the ledger" },
  { id: "keys", text: "Create, list and revoke keys" },
] as const;

const DAY_MS = 86_400_000;

/** The properties of a new key, as they are typed. */
export type KeyForm = {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly rpm: string;
  /** Until the key expires; empty if it does not. */
  readonly days: string;
};

export const NEW_KEY: KeyForm = { name: "", scopes: ["generate", "read"], rpm: "", days: "" };

export function keyFormErrors({ name, scopes, rpm }: KeyForm): FieldErrors<KeyForm> {
  return {
    name: name.trim() === "" ? "Enter a name." : undefined,
    scopes: scopes.length === 0 ? "Select at least one scope." : undefined,
    rpm: rpmError(rpm),
  };
}

export function rpmError(rpm: string): string | undefined {
  return /^(|[1-9]\d{0,6})$/.test(rpm) ? undefined : "Enter a whole number of at least 1, or nothing.";
}

/** The fields of a request that creates a key. */
export function keyPropertiesOf({ name, scopes, rpm, days }: KeyForm) {
  return {
    name: name.trim(),
    scopes: [...scopes],
    ...(rpm !== "" && { rateLimitRpm: Number(rpm) }),
    ...(days !== "" && { expiresAt: timestampFromDate(new Date(Date.now() + Number(days) * DAY_MS)) }),
  };
}

type KeyFieldsProps = {
  readonly form: KeyForm;
  readonly errors: FieldErrors<KeyForm>;
  readonly onChange: (part: Partial<KeyForm>) => void;
  readonly hints: { readonly rpm: string; readonly expiry: string };
  /** What the choice of no expiry means. */
  readonly noExpiry: string;
};

export function KeyFields({ form, errors, onChange, hints, noExpiry }: KeyFieldsProps) {
  return (
    <>
      <TextField
        label="Name"
        hint="For example, the service and environment that use the key."
        error={errors.name}
        value={form.name}
        maxLength={100}
        onChange={(name) => onChange({ name })}
      />
      <Scopes scopes={form.scopes} error={errors.scopes} onChange={(scopes) => onChange({ scopes })} />
      <TextField
        label="Requests per minute"
        hint={hints.rpm}
        error={errors.rpm}
        value={form.rpm}
        maxLength={7}
        inputMode="numeric"
        onChange={(rpm) => onChange({ rpm: rpm.trim() })}
      />
      <Field label="Expires" hint={hints.expiry}>
        {(control) => (
          <select
            {...control}
            value={form.days}
            onChange={(event) => onChange({ days: event.currentTarget.value })}
          >
            <option value="">{noExpiry}</option>
            <option value="1">In 1 day</option>
            <option value="7">In 7 days</option>
            <option value="30">In 30 days</option>
            <option value="90">In 90 days</option>
            <option value="365">In 365 days</option>
          </select>
        )}
      </Field>
    </>
  );
}

type ScopesProps = {
  readonly scopes: readonly string[];
  readonly error: string | undefined;
  readonly onChange: (scopes: readonly string[]) => void;
};

function Scopes({ scopes, error, onChange }: ScopesProps) {
  const toggle = (id: string, isOn: boolean) =>
    onChange(isOn ? [...scopes, id] : scopes.filter((scope) => scope !== id));
  return (
    <fieldset class="choices" aria-describedby={error === undefined ? undefined : "scopes-error"}>
      <legend class="field-name">Scopes</legend>
      {SCOPES.map(({ id, text }) => (
        <label key={id} class="choice">
          <input
            type="checkbox"
            checked={scopes.includes(id)}
            onChange={(event) => toggle(id, event.currentTarget.checked)}
          />
          <span>
            {id} <span class="muted small">{text}</span>
          </span>
        </label>
      ))}
      {error !== undefined && (
        <p id="scopes-error" class="field-error">
          {error}
        </p>
      )}
    </fieldset>
  );
}
