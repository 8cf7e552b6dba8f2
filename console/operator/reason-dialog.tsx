import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type FieldErrors, FormDialog } from "../shared/form-dialog.tsx";
import { TextField } from "../shared/text-field.tsx";

type ReasonDialogProps<Form> = {
  readonly title: string;
  /** What the button does: "Revoke key". */
  readonly action: string;
  readonly tone?: "primary" | "danger";
  readonly errors?: FieldErrors<Form>;
  /** Who can read the reason. */
  readonly hint?: string;
  readonly maxLength?: number;
  readonly onSubmit: (reason: string) => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren | ((errors: FieldErrors<Form>) => ComponentChildren);
};

/** A change that an operator confirms with a written reason. */
export function ReasonDialog<Form = unknown>(props: ReasonDialogProps<Form>) {
  const { errors = {}, hint = "Shown in the operator log.", maxLength = 500, onSubmit, children, ...dialog } = props;
  const [text, setText] = useState("");
  const reason = text.trim();
  const missing = reason === "" ? "Write a reason: it is recorded." : undefined;
  return (
    <FormDialog<{ readonly reason?: string }>
      {...dialog}
      errors={{ ...errors, reason: missing }}
      onSubmit={() => onSubmit(reason)}
    >
      {(shown) => (
        <>
          {typeof children === "function" ? children(shown as FieldErrors<Form>) : <div class="wrap">{children}</div>}
          <TextField label="Reason" hint={hint} error={shown.reason} value={text} maxLength={maxLength} onChange={setText} />
        </>
      )}
    </FormDialog>
  );
}
