import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { Choices } from "./choices.tsx";
import { Field } from "./field.tsx";
import type { FieldErrors } from "./form-dialog.tsx";
import { TextField } from "./text-field.tsx";
import { longTimeText } from "./time.tsx";

const SCOPES = [
  { id: "generate", text: "Call models, at the cost of the balance" },
  { id: "read", text: "Read models, usage and the ledger" },
  { id: "keys", text: "Create, list, change and revoke keys" },
  { id: "webhooks", text: "Manage webhooks" },
  { id: "billing", text: "Manage payments" },
] as const;

const DAY_MS = 86_400_000;

/** 50 ranges, each with a line break. */
const MAX_ADDRESSES_LENGTH = 2_500;

/** The properties of a key, as they are typed. */
export type KeyForm = {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly rpm: string;
  /** Until the key expires; empty if it does not; "keep" for the present time. */
  readonly days: string;
  /** Empty for all models. */
  readonly models: readonly string[];
  /** Empty for all addresses. */
  readonly addresses: string;
};

export function keyFormOf({ name, scopes, rateLimitRpm, models, allowedCidrs }: ApiKey): KeyForm {
  return {
    name,
    scopes,
    rpm: String(rateLimitRpm),
    days: "keep",
    models,
    addresses: allowedCidrs.join("\n"),
  };
}

export function keyFormErrors({ name, scopes, rpm }: KeyForm): FieldErrors<KeyForm> {
  return {
    name: name.trim() === "" ? "Enter a name." : undefined,
    scopes: scopes.length === 0 ? "Select at least one scope." : undefined,
    rpm: rpmError(rpm),
  };
}

function addressesOf(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((address) => address !== "");
}

function rpmError(rpm: string): string | undefined {
  return /^(|[1-9]\d{0,6})$/.test(rpm) ? undefined : "Enter a whole number of at least 1, or nothing.";
}

/** The fields of a request that creates a key. */
export function keyPropertiesOf({ name, scopes, rpm, days, models, addresses }: KeyForm) {
  return {
    name: name.trim(),
    scopes: [...scopes],
    models: [...models],
    allowedCidrs: [...addressesOf(addresses)],
    ...(rpm !== "" && { rateLimitRpm: Number(rpm) }),
    ...(/^\d+$/.test(days) && { expiresAt: timestampFromDate(new Date(Date.now() + Number(days) * DAY_MS)) }),
  };
}

const FIELDS = {
  name: "name",
  scopes: "scopes",
  rpm: "rate_limit_rpm",
  days: "expires_at",
  models: "models",
  addresses: "allowed_cidrs",
} as const satisfies Record<keyof KeyForm, string>;

/** Only what the viewer changed: somebody else may change the rest at the same time. */
export function keyChangesOf(form: KeyForm, before: KeyForm) {
  const changed = Object.entries(FIELDS).filter(
    ([name]) => String(form[name as keyof KeyForm]) !== String(before[name as keyof KeyForm]),
  );
  return { ...keyPropertiesOf(form), updateMask: { paths: changed.map(([, path]) => path) } };
}

export type KeyFieldsProps = {
  readonly form: KeyForm;
  readonly errors: FieldErrors<KeyForm>;
  readonly onChange: (part: Partial<KeyForm>) => void;
  readonly hints: { readonly rpm: string; readonly expiry: string };
  /** What the choice of no expiry means. */
  readonly noExpiry: string;
  /** The models that can be selected. */
  readonly models: readonly string[];
  /** The scopes that can be selected. Undefined for all. */
  readonly scopes?: readonly string[];
  /** The key that is changed. */
  readonly apiKey?: ApiKey;
};

export function KeyFields(props: KeyFieldsProps) {
  const { form, errors, onChange, hints, noExpiry, models, apiKey } = props;
  const scopes = SCOPES.filter(({ id }) => props.scopes?.includes(id) ?? true);
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
      <Choices
        label="Scopes"
        choices={scopes}
        selected={form.scopes}
        error={errors.scopes}
        onChange={(selected) => onChange({ scopes: selected })}
      />
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
          <select {...control} value={form.days} onChange={(event) => onChange({ days: event.currentTarget.value })}>
            {apiKey && <option value="keep">Unchanged{apiKey.expiresAt ? `: ${longTimeText(apiKey.expiresAt)}` : ""}</option>}
            <option value="">{noExpiry}</option>
            <option value="1">In 1 day</option>
            <option value="7">In 7 days</option>
            <option value="30">In 30 days</option>
            <option value="90">In 90 days</option>
            <option value="365">In 365 days</option>
          </select>
        )}
      </Field>
      <Choices
        label="Models"
        hint="Without a selection: all that it may use."
        // A model of the key may no longer be configured.
        choices={[...new Set([...models, ...form.models])].map((id) => ({ id, text: "" }))}
        selected={form.models}
        onChange={(selected) => onChange({ models: selected })}
      />
      <TextField
        label="Allowed addresses"
        hint="One address or range a line, such as 203.0.113.0/24. Empty: all that it may use."
        value={form.addresses}
        maxLength={MAX_ADDRESSES_LENGTH}
        rows={2}
        onChange={(addresses) => onChange({ addresses })}
      />
    </>
  );
}
