import { useState } from "preact/hooks";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { AMOUNT_HINT, amountOf, moneyText } from "../shared/money.tsx";
import { randomText } from "../shared/random-text.ts";
import { TextField } from "../shared/text-field.tsx";
import { useToast } from "../shared/toast.tsx";
import { ActionButton } from "./action-button.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** As the API limits it: the reason is also in the ledger, with the entry. */
const MAX_REASON_LENGTH = 400;

type RefundProps = {
  readonly accountId: string;
  readonly entry: LedgerEntry;
  /** Called after the refund. */
  readonly onDone: () => void;
};

/** Gives the charge of a generation back, or a part of it. Other entries have no charge. */
export function RefundButton(props: RefundProps) {
  const [isOpen, setOpen] = useState(false);
  if (props.entry.kind !== "generation" || props.entry.amountMicros === 0n) return null;
  return (
    <>
      <ActionButton method="refundEntry" onClick={() => setOpen(true)}>
        Refund
      </ActionButton>
      {isOpen && <RefundDialog {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

function RefundDialog({ accountId, entry, onDone, onClose }: RefundProps & { readonly onClose: () => void }) {
  const api = useApi();
  const toast = useToast();
  const [text, setText] = useState("");
  // The same for every attempt: after a lost response, the next one does not give the amount back again.
  const [idempotencyKey] = useState(() => `console-${randomText()}`);
  const charge = -entry.amountMicros;
  const isAll = text.trim() === "";
  const amount = isAll ? 0n : amountOf(text);
  const isValid = amount !== undefined && (isAll || (amount > 0n && amount <= charge));
  const refund = async (reason: string) => {
    const request = { accountId, entryId: entry.id, amountMicros: amount ?? 0n, reason, idempotencyKey };
    const { entry: adjustment } = await api.refundEntry(request);
    toast(`${moneyText(adjustment?.amountMicros ?? 0n)} is refunded.`);
    onDone();
  };
  return (
    <ReasonDialog
      title="Refund the generation"
      action={isAll || amount === undefined ? "Refund" : `Refund ${moneyText(amount)}`}
      errors={{ amount: isValid ? undefined : `Enter at most ${moneyText(charge)}, or nothing.` }}
      hint="The customer sees it in the ledger."
      maxLength={MAX_REASON_LENGTH}
      onSubmit={refund}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <p>The charge was {moneyText(charge)}. All refunds and corrections together never give back more.</p>
          <TextField
            label="Amount"
            hint={`${AMOUNT_HINT} Empty: all that is left of the charge.`}
            error={errors.amount}
            value={text}
            maxLength={21}
            inputMode="decimal"
            onChange={setText}
          />
        </>
      )}
    </ReasonDialog>
  );
}
