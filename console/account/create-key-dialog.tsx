import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { CopyButton } from "../shared/copy-button.tsx";
import { Dialog, ProblemNotice, useAction } from "../shared/dialog.tsx";
import { Field } from "../shared/field.tsx";
import { Notice } from "../shared/states.tsx";
import type { Viewer } from "./viewer.ts";

const SCOPES = [
  { id: "generate", text: "Call models, at the cost of the balance" },
  { id: "read", text: "Read models, usage and the ledger" },
  { id: "keys", text: "Create, list and revoke keys" },
] as const;

const DAY_MS = 86_400_000;

type CreateKeyDialogProps = {
  readonly viewer: Viewer;
  readonly onCreated: () => void;
  readonly onClose: () => void;
};

/** Asks for the properties of a key, then shows its secret once. */
export function CreateKeyDialog({ viewer, onCreated, onClose }: CreateKeyDialogProps) {
  const [secret, setSecret] = useState<string>();
  const create = async ({ name, scopes, rpm, days }: KeyForm) => {
    const response = await viewer.keyService.createKey({
      name: name.trim(),
      scopes: [...scopes],
      ...(rpm !== "" && { rateLimitRpm: Number(rpm) }),
      ...(days !== "" && { expiresAt: timestampFromDate(new Date(Date.now() + Number(days) * DAY_MS)) }),
    });
    setSecret(response.secret);
    onCreated();
  };
  return secret === undefined ? (
    <FormDialog onSubmit={create} onClose={onClose} />
  ) : (
    <SecretDialog secret={secret} onClose={onClose} />
  );
}

type KeyForm = {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly rpm: string;
  /** Until the key expires; empty if it does not. */
  readonly days: string;
};

const NEW: KeyForm = { name: "", scopes: ["generate", "read"], rpm: "", days: "" };

function problemsOf({ name, scopes, rpm }: KeyForm): Partial<Record<keyof KeyForm, string>> {
  return {
    ...(name.trim() === "" && { name: "Enter a name." }),
    ...(scopes.length === 0 && { scopes: "Select at least one scope." }),
    ...(!/^(|[1-9]\d{0,6})$/.test(rpm) && { rpm: "Enter a whole number of at least 1, or nothing." }),
  };
}

type FormDialogProps = {
  readonly onSubmit: (form: KeyForm) => Promise<void>;
  readonly onClose: () => void;
};

function FormDialog({ onSubmit, onClose }: FormDialogProps) {
  const [form, setForm] = useState(NEW);
  const [isChecked, setChecked] = useState(false);
  const { isBusy, problem, perform } = useAction();
  const problems = problemsOf(form);
  const shown = isChecked ? problems : {};
  const change = (part: Partial<KeyForm>) => setForm({ ...form, ...part });
  const submit = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (Object.keys(problems).length === 0) void perform(() => onSubmit(form));
  };
  return (
    <Dialog title="Create key" onClose={onClose} canClose={!isBusy}>
      <form class="dialog-body" onSubmit={submit} noValidate>
        <Field label="Name" hint="Such as the service and environment that use it." error={shown.name}>
          {(control) => (
            <input
              {...control}
              value={form.name}
              maxLength={100}
              autocomplete="off"
              onInput={(event) => change({ name: event.currentTarget.value })}
            />
          )}
        </Field>
        <Scopes scopes={form.scopes} error={shown.scopes} onChange={(scopes) => change({ scopes })} />
        <Field
          label="Requests per minute"
          hint="At most the limit of the key you are signed in with. Empty: as many as that key."
          error={shown.rpm}
        >
          {(control) => (
            <input
              {...control}
              value={form.rpm}
              inputMode="numeric"
              maxLength={7}
              autocomplete="off"
              onInput={(event) => change({ rpm: event.currentTarget.value.trim() })}
            />
          )}
        </Field>
        <Field label="Expires" hint="Not later than the key you are signed in with.">
          {(control) => (
            <select
              {...control}
              value={form.days}
              onChange={(event) => change({ days: event.currentTarget.value })}
            >
              <option value="">As late as possible</option>
              <option value="1">In 1 day</option>
              <option value="7">In 7 days</option>
              <option value="30">In 30 days</option>
              <option value="90">In 90 days</option>
              <option value="365">In 365 days</option>
            </select>
          )}
        </Field>
        {problem && <ProblemNotice problem={problem} />}
        <div class="dialog-actions">
          <Button onClick={onClose} disabled={isBusy}>
            Cancel
          </Button>
          <Button type="submit" tone="primary" isBusy={isBusy}>
            Create key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

type ScopesProps = {
  readonly scopes: readonly string[];
  readonly error: string | undefined;
  readonly onChange: (scopes: readonly string[]) => void;
};

function Scopes({ scopes, error, onChange }: ScopesProps) {
  const toggle = (id: string, isOn: boolean) =>
    onChange(isOn ? [...scopes, id] : scopes.filter((scope) => scope !== id));
  return (
    <fieldset class="choices" aria-describedby={error === undefined ? undefined : "scopes-error"}>
      <legend class="field-name">Scopes</legend>
      {SCOPES.map(({ id, text }) => (
        <label key={id} class="choice">
          <input
            type="checkbox"
            checked={scopes.includes(id)}
            onChange={(event) => toggle(id, event.currentTarget.checked)}
          />
          <span>
            {id} <span class="muted small">{text}</span>
          </span>
        </label>
      ))}
      {error !== undefined && (
        <p id="scopes-error" class="field-error">
          {error}
        </p>
      )}
    </fieldset>
  );
}

function SecretDialog({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <Dialog title="Save your new key" onClose={onClose} canClose={false}>
      <div class="dialog-body">
        <Notice tone="warn">The key is shown only now. Copy it to the place where you keep secrets.</Notice>
        <code class="shown-secret">{secret}</code>
        <div class="dialog-actions">
          <CopyButton text={secret} what="key" />
          <Button tone="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
