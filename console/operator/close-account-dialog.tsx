import { useEffect, useState } from "preact/hooks";
import { Choices } from "../shared/choices.tsx";
import { Copyable } from "../shared/copy-button.tsx";
import { Detail, Details } from "../shared/details.tsx";
import { Field } from "../shared/field.tsx";
import { moneyText, numberText } from "../shared/money.tsx";
import { ErrorState, Notice } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { delay } from "../shared/use-live.ts";
import { useQuery } from "../shared/use-query.ts";
import type { AccountDialogProps } from "./account-dialog-props.ts";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

const PAUSE_MS = 1_000;
const EXPORTED = "The account is exported, or its data is not needed";

/** Ends an account for good. It shows what ends, and asks for the name, because nothing of this can be undone. */
export function CloseAccountDialog({ account, onDone, onClose }: AccountDialogProps) {
  const api = useApi();
  const { id: accountId, name, balanceMicros } = account;
  const [form, setForm] = useState({ balance: "", exported: [] as readonly string[], typed: "" });
  const change = (part: Partial<typeof form>) => setForm((before) => ({ ...before, ...part }));
  const ending = useQuery((signal) => api.closeAccount({ accountId, reason: "shown", dryRun: true }, { signal }), [accountId]);
  const [controller] = useState(() => new AbortController());
  useEffect(() => () => controller.abort(), []);
  const close = async (reason: string) => {
    const { signal } = controller;
    const request = { accountId, reason, balance: form.balance };
    // Each call does a part. Running calls can take minutes, and the dialog stays open until they have ended.
    while (!(await api.closeAccount(request, { signal })).closed) await delay(PAUSE_MS, signal);
    onDone(`“${name}” is closed.`);
  };
  return (
    <ReasonDialog
      title={`Close “${name}”?`}
      action="Close account"
      tone="danger"
      errors={{
        balance: balanceMicros > 0n && form.balance === "" ? "Say what becomes of the balance." : undefined,
        exported: form.exported.length === 0 ? "Export the account first, or say that it is not needed." : undefined,
        typed: form.typed.trim() === name.trim() ? undefined : "Enter the name of the account.",
      }}
      hint="Shown in the operator log and, if there is a balance, in the ledger."
      onSubmit={close}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <Notice tone="warn">
            This cannot be undone. Calls are refused at once, and the name, the profile, the members, the names of keys and end
            users, and stored replies are erased. The ledger, the statements and the log stay.
          </Notice>
          {ending.problem && <ErrorState problem={ending.problem} onRetry={ending.reload} />}
          {ending.data && <Ending {...ending.data} />}
          <div>
            <p>Export the account first, where you use the vx command:</p>
            <Copyable text={`vx accounts export ${accountId} --output ${accountId}.tar.gz`} what="command" />
          </div>
          <Choices
            label="Export"
            choices={[{ id: EXPORTED, text: "" }]}
            selected={form.exported}
            error={errors.exported}
            onChange={(exported) => change({ exported })}
          />
          {balanceMicros > 0n && (
            <Field label={`What becomes of the balance of ${moneyText(balanceMicros)}`} error={errors.balance}>
              {(control) => (
                <select {...control} value={form.balance} onChange={(event) => change({ balance: event.currentTarget.value })}>
                  <option value="">Choose</option>
                  <option value="written_off">It is lost</option>
                  <option value="refunded">The customer got it back</option>
                </select>
              )}
            </Field>
          )}
          <TextField
            label="Name of the account"
            hint={`Enter “${name}” to confirm.`}
            error={errors.typed}
            value={form.typed}
            maxLength={100}
            onChange={(typed) => change({ typed })}
          />
        </>
      )}
    </ReasonDialog>
  );
}

type EndingProps = {
  readonly activeKeys: number;
  readonly webhooks: number;
  readonly pendingTopups: number;
  readonly paymentMethod: string;
};

function Ending({ activeKeys, webhooks, pendingTopups, paymentMethod }: EndingProps) {
  const rows = [
    ["Revoked keys", numberText(activeKeys)],
    ["Deleted webhooks", numberText(webhooks)],
    ["Top-ups not paid yet", numberText(pendingTopups)],
    ["Deleted payment method", paymentMethod || "None"],
  ];
  return (
    <Details>
      {rows.map(([name = "", value]) => (
        <Detail key={name} name={name}>
          {value}
        </Detail>
      ))}
    </Details>
  );
}
