import { useState } from "preact/hooks";
import type { AutoTopUp } from "../../gen/vx/v1/top_up_pb.js";
import { AutoTopUpDetails } from "../shared/auto-top-up-details.tsx";
import { ConfirmDialog } from "../shared/confirm-dialog.tsx";
import { FormDialog } from "../shared/form-dialog.tsx";
import { amountOf, moneyText } from "../shared/money.tsx";
import { ErrorState, Notice } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useToast } from "../shared/toast.tsx";
import { useQuery } from "../shared/use-query.ts";
import { Action } from "./action.tsx";
import { openProviderPage } from "./provider-page.tsx";
import type { Viewer } from "./viewer.ts";

/** After so many in a row, the server stops. */
const MAX_FAILURES = 3;

type Open = "change" | "stop" | undefined;

/** The automatic top-ups. A key can lower and stop them. */
export function AutoTopUpCard({ viewer, version }: { readonly viewer: Viewer; readonly version: unknown }) {
  const { topUpService } = viewer;
  const [open, setOpen] = useState<Open>();
  const query = useQuery(
    async (signal) => (await topUpService.getAutoTopUp({}, { signal })).autoTopup,
    [version],
  );
  const { data: auto, problem } = query;
  const put = async (change: Parameters<typeof topUpService.putAutoTopUp>[0]) => {
    const { autoTopup } = await topUpService.putAutoTopUp(change);
    query.reload();
    if (autoTopup) openProviderPage(viewer, autoTopup.setupUrl);
  };
  if (problem) return <ErrorState problem={problem} onRetry={query.reload} />;
  if (!auto) return null;
  return (
    <section class="card" aria-labelledby="auto-top-up-title">
      <h2 id="auto-top-up-title">Automatic top-ups</h2>
      {(auto.enabled ? auto.failures > 0 : auto.failures >= MAX_FAILURES) && <FailureNotice auto={auto} />}
      {!auto.enabled && !viewer.membership && (
        <p class="muted">The operator of this service can start them for your account.</p>
      )}
      <AutoTopUpDetails auto={auto} />
      {(auto.enabled || viewer.membership) && (
        <div class="dialog-actions">
          <Action viewer={viewer} method="putAutoTopUp" onClick={() => setOpen("change")}>
            {auto.enabled ? "Change" : "Start automatic top-ups"}
          </Action>
          {auto.enabled && (
            <Action viewer={viewer} method="putAutoTopUp" tone="danger" onClick={() => setOpen("stop")}>
              Stop automatic top-ups
            </Action>
          )}
        </div>
      )}
      {open === "change" && (
        <ChangeDialog
          auto={auto}
          canRaise={viewer.membership !== undefined}
          put={put}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open === "stop" && (
        <ConfirmDialog
          title="Stop automatic top-ups"
          action="Stop"
          tone="danger"
          onConfirm={() => put({ enabled: false })}
          onClose={() => setOpen(undefined)}
        >
          Calls are refused when the balance is used up.
          {!viewer.membership && " Only the operator of this service can start automatic top-ups again."} A
          payment that is already under way may still be made.
        </ConfirmDialog>
      )}
    </section>
  );
}

function FailureNotice({ auto }: { readonly auto: AutoTopUp }) {
  return (
    <Notice tone="warn">
      {auto.enabled
        ? "The last payment failed. After three in a row, automatic top-ups stop."
        : "Automatic top-ups were stopped, because three payments in a row failed."}
    </Notice>
  );
}

type ChangeDialogProps = {
  readonly auto: AutoTopUp;
  /** Keys can only lower the amounts. */
  readonly canRaise: boolean;
  readonly put: (change: {
    enabled: boolean;
    thresholdMicros: bigint;
    amountMicros: bigint;
    monthlyMaxMicros: bigint;
    replacePaymentMethod: boolean;
  }) => Promise<void>;
  readonly onClose: () => void;
};

function ChangeDialog({ auto, canRaise, put, onClose }: ChangeDialogProps) {
  const toast = useToast();
  const [form, setForm] = useState({
    threshold: plainText(auto.thresholdMicros),
    amount: plainText(auto.amountMicros),
    monthlyMax: plainText(auto.monthlyMaxMicros),
    replaces: auto.paymentMethod === "",
  });
  const set = (part: Partial<typeof form>) => setForm((before) => ({ ...before, ...part }));
  const problemOf = (text: string, max: bigint) => {
    const micros = amountOf(text);
    if (micros === undefined || micros <= 0n) return "Enter an amount, such as 25.00.";
    return micros > max && !canRaise ? `A key can only lower it: at most ${moneyText(max)}.` : undefined;
  };
  return (
    <FormDialog
      title={auto.enabled ? "Change automatic top-ups" : "Start automatic top-ups"}
      action="Save"
      errors={{
        threshold: problemOf(form.threshold, auto.thresholdMicros),
        amount: problemOf(form.amount, auto.amountMicros),
        monthlyMax: problemOf(form.monthlyMax, auto.monthlyMaxMicros),
      }}
      onSubmit={async () => {
        await put({
          enabled: true,
          thresholdMicros: amountOf(form.threshold) ?? 0n,
          amountMicros: amountOf(form.amount) ?? 0n,
          monthlyMaxMicros: amountOf(form.monthlyMax) ?? 0n,
          replacePaymentMethod: form.replaces,
        });
        toast("The automatic top-ups are changed.");
      }}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <TextField
            label="Top up when the balance is below"
            error={errors.threshold}
            value={form.threshold}
            maxLength={30}
            inputMode="decimal"
            onChange={(threshold) => set({ threshold })}
          />
          <TextField
            label="Amount"
            error={errors.amount}
            value={form.amount}
            maxLength={30}
            inputMode="decimal"
            onChange={(amount) => set({ amount })}
          />
          <TextField
            label="At most per month"
            error={errors.monthlyMax}
            value={form.monthlyMax}
            maxLength={30}
            inputMode="decimal"
            onChange={(monthlyMax) => set({ monthlyMax })}
          />
          <label class="choice">
            <input
              type="checkbox"
              checked={form.replaces}
              onChange={(event) => set({ replaces: event.currentTarget.checked })}
            />
            Ask for a page on which to store another payment method
          </label>
        </>
      )}
    </FormDialog>
  );
}

function plainText(micros: bigint): string {
  return micros === 0n ? "" : moneyText(micros).replaceAll(/[^0-9.]/g, "");
}
