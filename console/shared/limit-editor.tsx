import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import type { ChangeDialog } from "./form-dialog.tsx";
import { LimitFields, limitErrors, limitFormOf, limitPropertiesOf, NEW_LIMIT } from "./limit-fields.tsx";
import { type LimitList, LimitTable, limitText } from "./limit-list.tsx";
import { useToast } from "./toast.tsx";

type ActionProps = {
  readonly method: "setLimit" | "removeLimit";
  readonly tone?: "primary" | "plain";
  readonly label?: string;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
};

type LimitEditorProps = {
  readonly limits: LimitList;
  readonly ownerOf: (limit: Limit) => ComponentChildren;
  /** Whether the viewer can change the limit here. */
  readonly isOwn: (limit: Limit) => boolean;
  /** An expired or revoked key cannot be changed. */
  readonly isReadOnly: boolean;
  readonly isOfPlan?: boolean;
  readonly isOfAccount?: boolean;
  readonly models: readonly string[];
  readonly set: (limit: ReturnType<typeof limitPropertiesOf>, reason: string) => Promise<unknown>;
  readonly remove: (limit: Limit, reason: string) => Promise<unknown>;
  /** Returns a button. Not a component: one that is defined inline is replaced at each refresh, and the button loses the focus. */
  readonly actionOf: (props: ActionProps) => ComponentChildren;
  readonly Form: ChangeDialog;
};

/** Limits, and dialogs that set, change and remove them. */
export function LimitEditor(props: LimitEditorProps) {
  const { limits, ownerOf, isOwn, isReadOnly, isOfPlan = false, isOfAccount = false, actionOf } = props;
  const [open, setOpen] = useState<Limit | "new">();
  const [removed, setRemoved] = useState<Limit>();
  const actionsOf = (limit: Limit) =>
    !isReadOnly &&
    isOwn(limit) && (
      <div class="row-actions">
        {actionOf({
          method: "setLimit",
          label: `Change ${limitText(limit)}`,
          onClick: () => setOpen(limit),
          children: "Change",
        })}
        {actionOf({
          method: "removeLimit",
          label: `Remove ${limitText(limit)}`,
          onClick: () => setRemoved(limit),
          children: "Remove",
        })}
      </div>
    );
  return (
    <>
      {!isReadOnly && (
        <div class="page-actions">
          {actionOf({
            method: "setLimit",
            tone: "primary",
            onClick: () => setOpen("new"),
            children: "Set limit",
          })}
        </div>
      )}
      <LimitTable limits={limits} ownerOf={ownerOf} actionsOf={actionsOf} isOfPlan={isOfPlan} isOfAccount={isOfAccount} />
      {open && <SetDialog {...props} limit={open === "new" ? undefined : open} onClose={() => setOpen(undefined)} />}
      {removed && <RemoveDialog {...props} limit={removed} onClose={() => setRemoved(undefined)} />}
    </>
  );
}

type SetDialogProps = LimitEditorProps & {
  /** Undefined for a new limit. */
  readonly limit: Limit | undefined;
  readonly onClose: () => void;
};

function SetDialog({ limit, limits, models, set, Form, onClose }: SetDialogProps) {
  const toast = useToast();
  const [form, setForm] = useState(limit ? limitFormOf(limit) : NEW_LIMIT);
  const save = async (reason: string) => {
    await set(limitPropertiesOf(form), reason);
    toast("The limit is set.");
    limits.pages.reload();
  };
  return (
    <Form
      title={limit ? `Change “${limitText(limit)}”` : "Set limit"}
      action="Set limit"
      errors={limitErrors(form)}
      onSubmit={save}
      onClose={onClose}
    >
      {(errors) => (
        <LimitFields
          form={form}
          errors={errors}
          onChange={(part) => setForm((before) => ({ ...before, ...part }))}
          isFixed={limit !== undefined}
          models={models}
        />
      )}
    </Form>
  );
}

type RemoveDialogProps = LimitEditorProps & { readonly limit: Limit; readonly onClose: () => void };

function RemoveDialog({ limit, limits, remove, Form, onClose }: RemoveDialogProps) {
  const toast = useToast();
  const save = async (reason: string) => {
    await remove(limit, reason);
    toast("The limit is removed.");
    limits.pages.reload();
  };
  return (
    <Form
      title={`Remove “${limitText(limit)}”?`}
      action="Remove limit"
      tone="danger"
      errors={{}}
      onSubmit={save}
      onClose={onClose}
    >
      {() => <p>It no longer applies from the next call.</p>}
    </Form>
  );
}
