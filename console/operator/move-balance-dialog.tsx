import { useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { amountOf, Money, moneyText } from "../shared/money.tsx";
import { randomText } from "../shared/random-text.ts";
import { TextField } from "../shared/text-field.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { AccountDialogProps } from "./account-dialog-props.ts";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

type MoveBalanceDialogProps = AccountDialogProps & { readonly kind: "credit" | "adjust" };

/** As the database limits it. */
const MAX_BALANCE_MICROS = 9_000_000_000_000_000n;

/** Credits an account, or adjusts its balance in either direction. */
export function MoveBalanceDialog({ kind, account, onDone, onClose }: MoveBalanceDialogProps) {
  const api = useApi();
  const [text, setText] = useState("");
  // The same for every attempt: after a lost response, the next one does not move the amount again.
  const [idempotencyKey] = useState(() => `console-${randomText()}`);
  // Its page may have been open for long.
  const { data: current = account } = useQuery(
    async (signal) => (await api.getAccount({ accountId: account.id }, { signal })).account,
    [account.id],
  );
  const amount = amountOf(text.trim().replace(/^\+/, ""));
  const move = async (reason: string) => {
    const request = { accountId: account.id, amountMicros: amount ?? 0n, reason, idempotencyKey };
    if (kind === "credit") await api.creditAccount(request);
    else await api.adjustAccount(request);
    onDone(`${moneyText(amount ?? 0n)} ${kind === "credit" ? "credited to" : "added to"} “${account.name}”.`);
  };
  const isCredit = kind === "credit";
  return (
    <ReasonDialog
      title={`${isCredit ? "Credit" : "Adjust"} “${account.name}”`}
      action={actionOf(kind, amount)}
      errors={{ amount: amountError(kind, amount, current) }}
      hint="The customer sees it in the ledger."
      onSubmit={move}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <TextField
            label="Amount"
            hint={isCredit ? "For example, 25 or 25.00." : "For example, 25.00, or -25.00 to subtract."}
            error={errors.amount}
            value={text}
            maxLength={21}
            inputMode="decimal"
            onChange={setText}
          />
          <dl class="sum">
            <dt>Balance now</dt>
            <dd>
              <Money micros={current.balanceMicros} />
            </dd>
            {current.heldMicros > 0n && (
              <>
                <dt>Held by running calls</dt>
                <dd>
                  <Money micros={current.heldMicros} />
                </dd>
              </>
            )}
            <dt>Balance after</dt>
            <dd>
              <Money micros={current.balanceMicros + (amount ?? 0n)} />
            </dd>
          </dl>
        </>
      )}
    </ReasonDialog>
  );
}

function actionOf(kind: "credit" | "adjust", amount: bigint | undefined): string {
  if (amount === undefined) return kind === "credit" ? "Credit" : "Adjust";
  return `${kind === "credit" ? "Credit" : "Adjust by"} ${moneyText(amount)}`;
}

function amountError(
  kind: "credit" | "adjust",
  amount: bigint | undefined,
  { balanceMicros, heldMicros }: Account,
): string | undefined {
  if (amount === undefined) return "Enter an amount with at most 6 decimals, such as 25.00.";
  if (amount === 0n) return "Enter an amount that is not 0.";
  if (kind === "credit" && amount < 0n) return "Enter an amount above 0. “Adjust” can subtract.";
  const free = balanceMicros - heldMicros;
  if (amount < -free) return `At most ${moneyText(free)} can be subtracted.`;
  return balanceMicros + amount > MAX_BALANCE_MICROS ? `A balance can be at most ${moneyText(MAX_BALANCE_MICROS)}.` : undefined;
}
