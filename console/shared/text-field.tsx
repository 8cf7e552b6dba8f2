import { Field } from "./field.tsx";

type TextFieldProps = {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly value: string;
  readonly maxLength: number;
  readonly inputMode?: "text" | "numeric" | "decimal" | "email";
  readonly rows?: number;
  readonly placeholder?: string;
  readonly onChange: (value: string) => void;
};

/** A text of one line, or of several if it has rows. */
export function TextField({ label, hint, error, rows, onChange, inputMode = "text", ...rest }: TextFieldProps) {
  return (
    <Field label={label} error={error} {...(hint !== undefined && { hint })}>
      {(control) =>
        rows === undefined ? (
          <input
            {...control}
            {...rest}
            inputMode={inputMode}
            autocomplete="off"
            onInput={(event) => onChange(event.currentTarget.value)}
          />
        ) : (
          <textarea {...control} {...rest} rows={rows} onInput={(event) => onChange(event.currentTarget.value)} />
        )
      }
    </Field>
  );
}
