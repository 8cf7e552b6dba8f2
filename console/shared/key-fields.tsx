import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ComponentChildren } from "preact";
import { type ApiKey, type CreateKeyRequestSchema, UpdateKeyRequestSchema } from "../../gen/vx/v1/key_pb.js";
import { Choices } from "./choices.tsx";
import { Detail } from "./details.tsx";
import { Field } from "./field.tsx";
import type { FieldErrors } from "./form-dialog.tsx";
import { numberText } from "./money.tsx";
import { TextField } from "./text-field.tsx";
import { longTimeText, Time } from "./time.tsx";

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
  readonly rateLimitRpm: string;
  /** The days until the key expires; empty if it does not; "keep" for the present time. */
  readonly expiresAt: string;
  /** Empty for all models. */
  readonly models: readonly string[];
  /** Empty for all addresses. */
  readonly allowedCidrs: string;
};

type Request = Omit<MessageInitShape<typeof CreateKeyRequestSchema>, "$typeName" | "$unknown">;
/** Limits have inputs of their own, and a page. */
type PropertyName = Exclude<keyof Request, "limits">;

type Settings = {
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

type Input<Value> = {
  readonly value: Value;
  readonly error: string | undefined;
  readonly onChange: (value: Value) => void;
};

type Property<Name extends PropertyName> = {
  /** Of a new key. */
  readonly initial: KeyForm[Name];
  readonly typed: (key: ApiKey) => KeyForm[Name];
  /** Undefined if the request does not set it. */
  readonly given: (typed: KeyForm[Name]) => Request[Name] | undefined;
  readonly error?: (typed: KeyForm[Name]) => string | undefined;
  readonly input: (input: Input<KeyForm[Name]>, settings: Settings) => ComponentChildren;
  /** On the page of a key: its title there, and its value. Undefined if the header has it. */
  readonly detail: readonly [title: string, value: (key: ApiKey) => ComponentChildren] | undefined;
  /** In a list of keys, a line, which may be empty. Undefined if another column has it. */
  readonly line: ((key: ApiKey) => string) | undefined;
};

/** In the order of the inputs. */
const PROPERTIES: { readonly [Name in PropertyName]-?: Property<Name> } = {
  name: {
    initial: "",
    typed: ({ name }) => name,
    given: (name) => name.trim(),
    error: (name) => (name.trim() === "" ? "Enter a name." : undefined),
    input: (input) => (
      <TextField label="Name" hint="For example, the service and environment that use the key." maxLength={100} {...input} />
    ),
    detail: undefined,
    line: undefined,
  },
  scopes: {
    initial: ["generate", "read"],
    typed: ({ scopes }) => scopes,
    given: (scopes) => [...scopes],
    error: (scopes) => (scopes.length === 0 ? "Select at least one scope." : undefined),
    input: ({ value, ...input }, { scopes }) => (
      <Choices label="Scopes" choices={SCOPES.filter(({ id }) => scopes?.includes(id) ?? true)} selected={value} {...input} />
    ),
    detail: ["Scopes", ({ scopes }) => scopes.join(", ")],
    line: ({ scopes }) => scopes.join(", "),
  },
  rateLimitRpm: {
    initial: "",
    typed: ({ rateLimitRpm }) => String(rateLimitRpm),
    given: (rpm) => (rpm === "" ? undefined : Number(rpm)),
    error: (rpm) => (/^(|[1-9]\d{0,6})$/.test(rpm) ? undefined : "Enter a whole number of at least 1, or nothing."),
    input: ({ onChange, ...input }, { hints }) => (
      <TextField
        label="Requests per minute"
        hint={hints.rpm}
        maxLength={7}
        inputMode="numeric"
        onChange={(rpm) => onChange(rpm.trim())}
        {...input}
      />
    ),
    detail: ["Requests per minute", ({ rateLimitRpm }) => numberText(rateLimitRpm)],
    line: undefined,
  },
  expiresAt: {
    initial: "",
    typed: () => "keep",
    given: (days) => (/^\d+$/.test(days) ? timestampFromDate(new Date(Date.now() + Number(days) * DAY_MS)) : undefined),
    input: ({ value, onChange }, { hints, noExpiry, apiKey }) => (
      <Field label="Expires" hint={hints.expiry}>
        {(control) => (
          <select {...control} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
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
    ),
    detail: ["Expires", ({ expiresAt }) => <Time at={expiresAt} none="Never" />],
    line: undefined,
  },
  models: {
    initial: [],
    typed: ({ models }) => models,
    given: (models) => [...models],
    input: ({ value, ...input }, { models }) => (
      <Choices
        label="Models"
        hint="Without a selection: all that it may use."
        // A model of the key may no longer be configured.
        choices={[...new Set([...models, ...value])].map((id) => ({ id, text: "" }))}
        selected={value}
        {...input}
      />
    ),
    detail: ["Models", ({ models }) => models.join(", ") || "All"],
    line: ({ models }) => models.join(", "),
  },
  allowedCidrs: {
    initial: "",
    typed: ({ allowedCidrs }) => allowedCidrs.join("\n"),
    given: (text) => text.split(/[\s,]+/).filter((address) => address !== ""),
    input: (input) => (
      <TextField
        label="Allowed addresses"
        hint="One address or range a line, such as 203.0.113.0/24. Empty: all that it may use."
        maxLength={MAX_ADDRESSES_LENGTH}
        rows={2}
        {...input}
      />
    ),
    detail: ["Allowed addresses", ({ allowedCidrs }) => allowedCidrs.join(", ") || "All"],
    line: ({ allowedCidrs }) => (allowedCidrs.length === 0 ? "" : `From ${allowedCidrs.join(", ")}`),
  },
};

/** The properties without the type of each, which the compiler cannot follow through a list. */
const ALL = Object.entries(PROPERTIES) as unknown as readonly (readonly [PropertyName, Property<"name">])[];

export const NEW_KEY_FORM = formOf(({ initial }) => initial);

export function keyFormOf(key: ApiKey): KeyForm {
  return formOf(({ typed }) => typed(key));
}

function formOf(textOf: (property: Property<"name">) => string): KeyForm {
  return Object.fromEntries(ALL.map(([name, property]) => [name, textOf(property)])) as unknown as KeyForm;
}

export function keyFormErrors(form: KeyForm): FieldErrors<KeyForm> {
  return Object.fromEntries(ALL.map(([name, { error }]) => [name, error?.(form[name] as string)]));
}

/** The fields of a request that creates a key. */
export function keyPropertiesOf(form: KeyForm): Request {
  const given = ALL.map(([name, property]) => [name, property.given(form[name] as string)] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** Only what the viewer changed: somebody else may change the rest at the same time. */
export function keyChangesOf(form: KeyForm, before: KeyForm) {
  const changed = ALL.filter(([name]) => String(form[name]) !== String(before[name]));
  const paths = changed.map(([name]) => UpdateKeyRequestSchema.field[name].name);
  return { ...keyPropertiesOf(form), updateMask: { paths } };
}

export type KeyFieldsProps = Settings & {
  readonly form: KeyForm;
  readonly errors: FieldErrors<KeyForm>;
  readonly onChange: (part: Partial<KeyForm>) => void;
};

export function KeyFields({ form, errors, onChange, ...settings }: KeyFieldsProps) {
  return (
    <>
      {ALL.map(([name, { input }]) =>
        input({ value: form[name] as string, error: errors[name], onChange: (value) => onChange({ [name]: value }) }, settings),
      )}
    </>
  );
}

/** The properties of a key on its page. */
export function KeyDetails({ apiKey }: { readonly apiKey: ApiKey }) {
  return (
    <>
      {ALL.map(
        ([name, { detail }]) =>
          detail && (
            <Detail key={name} name={detail[0]}>
              {detail[1](apiKey)}
            </Detail>
          ),
      )}
    </>
  );
}

/** The properties of a key in a list: the scopes, and what not every key has. */
export function KeyLines({ apiKey }: { readonly apiKey: ApiKey }) {
  const [first, ...others] = ALL.flatMap(([, { line }]) => line?.(apiKey) || []);
  return (
    <>
      {first}
      {others.map((text) => (
        <div key={text} class="muted small wrap">
          {text}
        </div>
      ))}
    </>
  );
}
