import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** Attributes that connect a control with its label, hint and error. */
type ControlProps = {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean;
};

type FieldProps = {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly children: (control: ControlProps) => ComponentChildren;
};

/** A control with its label, and with a hint or an error below it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const note = error ?? hint;
  const control: ControlProps = {
    id,
    "aria-describedby": note === undefined ? undefined : `${id}-note`,
    "aria-invalid": error !== undefined,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(control)}
      {note !== undefined && (
        <p id={`${id}-note`} class={error === undefined ? "field-hint" : "field-error"}>
          {note}
        </p>
      )}
    </div>
  );
}
