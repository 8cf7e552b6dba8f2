import { Button } from "./button.tsx";
import type { FieldErrors } from "./form-dialog.tsx";
import { KeyFields, type KeyFieldsProps, type KeyForm, keyFormErrors, keyPropertiesOf, NEW_KEY_FORM } from "./key-fields.tsx";
import { LimitAmount, type LimitForm, LimitIdentity, limitErrors, limitPropertiesOf, NEW_LIMIT } from "./limit-fields.tsx";

/** As the API limits it. */
const MAX_LIMITS = 20;

/** The properties of a new key, as they are typed, with its first limits. */
type NewKeyForm = KeyForm & { readonly limits: readonly LimitForm[] };

export const NEW_KEY: NewKeyForm = { ...NEW_KEY_FORM, limits: [] };

export function newKeyErrors(form: NewKeyForm): FieldErrors<NewKeyForm> {
  const hasInvalidLimit = form.limits.some((limit) => limitErrors(limit).amount !== undefined);
  return { ...keyFormErrors(form), limits: hasInvalidLimit ? "Enter the amount of each limit." : undefined };
}

/** The fields of a request that creates a key. */
export function newKeyPropertiesOf(form: NewKeyForm) {
  return { ...keyPropertiesOf(form), limits: form.limits.map(limitPropertiesOf) };
}

type NewKeyFieldsProps = Omit<KeyFieldsProps, "form" | "errors" | "onChange" | "apiKey"> & {
  readonly form: NewKeyForm;
  readonly errors: FieldErrors<NewKeyForm>;
  readonly onChange: (part: Partial<NewKeyForm>) => void;
};

export function NewKeyFields(props: NewKeyFieldsProps) {
  const {
    form: { limits },
    errors,
    onChange,
    models,
  } = props;
  const change = (index: number, part: Partial<LimitForm>) =>
    onChange({ limits: limits.map((limit, i) => (i === index ? { ...limit, ...part } : limit)) });
  return (
    <>
      <KeyFields {...props} />
      {limits.map((limit, i) => (
        // A limit has no id before it is stored.
        <fieldset key={i} class="choices new-limit">
          <legend class="field-name">Limit {i + 1}</legend>
          <LimitIdentity form={limit} onChange={(part) => change(i, part)} models={models} />
          <LimitAmount
            form={limit}
            errors={errors.limits === undefined ? {} : limitErrors(limit)}
            onChange={(part) => change(i, part)}
          />
          <div>
            <Button onClick={() => onChange({ limits: limits.filter((_, other) => other !== i) })}>Remove limit {i + 1}</Button>
          </div>
        </fieldset>
      ))}
      <div>
        <Button disabled={limits.length >= MAX_LIMITS} onClick={() => onChange({ limits: [...limits, NEW_LIMIT] })}>
          Add limit
        </Button>
      </div>
    </>
  );
}
