import { useState } from "preact/hooks";
import type { Plan } from "../../gen/vx/admin/v1/admin_pb.js";
import type { FieldErrors } from "../shared/form-dialog.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** The limits of a plan, as they are typed. */
type PlanForm = Readonly<Record<"name" | "rpm" | "maxActiveKeys" | "maxKeysCreatedPerHour", string>>;

type PlanDialogProps = {
  /** The plan to change; undefined for a new one. */
  readonly plan: Plan | undefined;
  /** The names of all plans. */
  readonly names: readonly string[];
  readonly onSaved: (name: string) => void;
  readonly onClose: () => void;
};

export function PlanDialog({ plan, names, onSaved, onClose }: PlanDialogProps) {
  const api = useApi();
  const [form, setForm] = useState(formOf(plan));
  const set = (field: keyof PlanForm) => (text: string) => setForm((before) => ({ ...before, [field]: text.trim() }));
  const { name, rpm, maxActiveKeys, maxKeysCreatedPerHour } = form;
  const save = async (reason: string) => {
    await api.putPlan({
      name,
      rpm: Number(rpm),
      maxActiveKeys: Number(maxActiveKeys),
      ...(maxKeysCreatedPerHour !== "" && { maxKeysCreatedPerHour: Number(maxKeysCreatedPerHour) }),
      reason,
    });
    onSaved(name);
  };
  const number = { maxLength: 7, inputMode: "numeric" } as const;
  return (
    <ReasonDialog
      title={plan ? `Edit the plan “${plan.name}”` : "Create plan"}
      action={plan ? "Save" : "Create plan"}
      errors={errorsOf(form, plan ? [] : names)}
      onSubmit={save}
      onClose={onClose}
    >
      {(errors) => (
        <>
          {!plan && (
            <TextField
              label="Name"
              hint="A lower-case letter, then letters, digits, _ and -."
              error={errors.name}
              value={name}
              maxLength={32}
              onChange={set("name")}
            />
          )}
          <TextField
            label="Requests per minute"
            hint="Of each key."
            error={errors.rpm}
            value={rpm}
            onChange={set("rpm")}
            {...number}
          />
          <TextField
            label="Active keys"
            hint="Per account. Existing keys above the limit stay active."
            error={errors.maxActiveKeys}
            value={maxActiveKeys}
            onChange={set("maxActiveKeys")}
            {...number}
          />
          <TextField
            label="Keys created per hour"
            hint="Per account, for keys that its own keys create. Leave empty for 10 times the active keys."
            error={errors.maxKeysCreatedPerHour}
            value={maxKeysCreatedPerHour}
            onChange={set("maxKeysCreatedPerHour")}
            {...number}
          />
        </>
      )}
    </ReasonDialog>
  );
}

function formOf(plan: Plan | undefined): PlanForm {
  if (!plan) return { name: "", rpm: "", maxActiveKeys: "", maxKeysCreatedPerHour: "" };
  const { name, rpm, maxActiveKeys, maxKeysCreatedPerHour } = plan;
  return {
    name,
    rpm: String(rpm),
    maxActiveKeys: String(maxActiveKeys),
    maxKeysCreatedPerHour: String(maxKeysCreatedPerHour),
  };
}

function errorsOf(form: PlanForm, taken: readonly string[]): FieldErrors<PlanForm> {
  const whole = (text: string, lowest: RegExp) => (lowest.test(text) ? undefined : "Enter a whole number of at least 1.");
  return {
    name: nameError(form.name, taken),
    rpm: whole(form.rpm, /^[1-9]\d*$/),
    maxActiveKeys: whole(form.maxActiveKeys, /^[1-9]\d*$/),
    maxKeysCreatedPerHour: whole(form.maxKeysCreatedPerHour, /^(|[1-9]\d*)$/),
  };
}

function nameError(name: string, taken: readonly string[]): string | undefined {
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(name)) return "Enter a lower-case letter, then letters, digits, _ and -.";
  return taken.includes(name) ? "A plan with this name exists. Edit it instead." : undefined;
}
