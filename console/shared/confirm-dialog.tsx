import type { ComponentChildren } from "preact";
import { FormDialog } from "./form-dialog.tsx";

type ConfirmDialogProps = {
  readonly title: string;
  readonly children: ComponentChildren;
  /** What the button does: "Revoke key". */
  readonly action: string;
  readonly tone?: "primary" | "danger";
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
};

/** Asks before an action. It closes when the action succeeds; otherwise it shows why the action failed. */
export function ConfirmDialog({ children, onConfirm, ...dialog }: ConfirmDialogProps) {
  return (
    <FormDialog {...dialog} errors={{}} onSubmit={onConfirm}>
      {() => <div class="wrap">{children}</div>}
    </FormDialog>
  );
}
