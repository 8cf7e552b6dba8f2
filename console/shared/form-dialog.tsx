import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Dialog, ProblemNotice, useAction } from "./dialog.tsx";

/** Messages about invalid fields of a form. */
export type FieldErrors<Form> = { readonly [Name in keyof Form]?: string | undefined };

/** A form whose change may need a reason, as those of operators do. */
export type ChangeDialog = (
  props: Omit<FormDialogProps<Readonly<Record<string, string>>>, "onSubmit"> & {
    readonly onSubmit: (reason: string) => Promise<void>;
  },
) => ComponentChildren;

type FormDialogProps<Form> = {
  readonly title: string;
  /** What the button does: "Create key". */
  readonly action: string;
  readonly tone?: "primary" | "danger";
  readonly errors: FieldErrors<Form>;
  readonly onSubmit: () => Promise<void>;
  readonly onClose: () => void;
  /** The fields. The errors are empty until the form is submitted. */
  readonly children: (errors: FieldErrors<Form>) => ComponentChildren;
};

/** A form in a dialog. It closes when the action succeeds; otherwise it shows why the action failed. */
export function FormDialog<Form>(props: FormDialogProps<Form>) {
  const { title, action, tone = "primary", errors, onSubmit, onClose, children } = props;
  const [isChecked, setChecked] = useState(false);
  const { isBusy, problem, perform } = useAction();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    setChecked(true);
    if (Object.values(errors).some((error) => error !== undefined)) {
      // After the errors are shown, the first field with one gets the focus.
      requestAnimationFrame(() => form.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    if (await perform(onSubmit)) onClose();
  };
  return (
    <Dialog title={title} onClose={onClose} canClose={!isBusy}>
      <form class="dialog-body" onSubmit={(event) => void submit(event)} noValidate>
        {children(isChecked ? errors : {})}
        {problem && <ProblemNotice problem={problem} />}
        <div class="dialog-actions">
          <Button onClick={onClose} disabled={isBusy}>
            Cancel
          </Button>
          <Button type="submit" tone={tone} isBusy={isBusy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
