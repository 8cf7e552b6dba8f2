import { useState } from "preact/hooks";
import type { AutoTopUp, GetAutoTopUpResponse } from "../../gen/vx/v1/top_up_pb.js";
import { Detail, Details } from "./details.tsx";
import type { ChangeDialog } from "./form-dialog.tsx";
import { amountOf, Money, moneyText } from "./money.tsx";
import { PermittedButton } from "./permitted-button.tsx";
import { ErrorState, Notice } from "./states.tsx";
import { TextField } from "./text-field.tsx";
import { useToast } from "./toast.tsx";
import { useQuery } from "./use-query.ts";

/** After so many in a row, the server stops. */
const MAX_FAILURES = 3;

type Settings = {
  readonly enabled: true;
  readonly thresholdMicros: bigint;
  readonly amountMicros: bigint;
  readonly monthlyMaxMicros: bigint;
  readonly replacePaymentMethod: boolean;
};

type AutoTopUpCardProps = {
  /** The settings are read again with another version. */
  readonly version: unknown;
  readonly get: (signal: AbortSignal) => Promise<Pick<GetAutoTopUpResponse, "autoTopup">>;
  readonly put: (change: Settings | { readonly enabled: false }, reason: string) => Promise<unknown>;
  /** Why the viewer may not change them; undefined if the viewer may. */
  readonly refusal: string | undefined;
  /** Keys can only lower the amounts, and stop. */
  readonly canRaise: boolean;
  readonly Form: ChangeDialog;
};

/** The automatic top-ups, and their changes. */
export function AutoTopUpCard({ version, get, put, refusal, canRaise, Form }: AutoTopUpCardProps) {
  const [open, setOpen] = useState<"change" | "stop">();
  const query = useQuery(async (signal) => (await get(signal)).autoTopup, [version]);
  const { data: auto, problem } = query;
  if (problem) return <ErrorState problem={problem} onRetry={query.reload} />;
  if (!auto) return null;
  const dialog = {
    put: async (...change: Parameters<typeof put>) => {
      await put(...change);
      query.reload();
    },
    canRaise,
    onClose: () => setOpen(undefined),
    Form,
  };
  return (
    <section class="card" aria-labelledby="auto-top-up-title">
      <h2 id="auto-top-up-title">Automatic top-ups</h2>
      {(auto.enabled ? auto.failures > 0 : auto.failures >= MAX_FAILURES) && <FailureNotice auto={auto} />}
      {!auto.enabled && !canRaise && <p class="muted">The operator of this service can start them for your account.</p>}
      <AutoTopUpDetails auto={auto} />
      {(auto.enabled || canRaise) && (
        <div class="dialog-actions">
          <PermittedButton refusal={refusal} onClick={() => setOpen("change")}>
            {auto.enabled ? "Change" : "Start automatic top-ups"}
          </PermittedButton>
          {auto.enabled && (
            <PermittedButton refusal={refusal} tone="danger" onClick={() => setOpen("stop")}>
              Stop automatic top-ups
            </PermittedButton>
          )}
        </div>
      )}
      {open === "change" && <SettingsDialog auto={auto} {...dialog} />}
      {open === "stop" && <StopDialog {...dialog} />}
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

type DialogProps = Pick<AutoTopUpCardProps, "put" | "canRaise" | "Form"> & { readonly onClose: () => void };

function StopDialog({ put, canRaise, onClose, Form }: DialogProps) {
  return (
    <Form
      title="Stop automatic top-ups"
      action="Stop"
      tone="danger"
      errors={{}}
      onSubmit={async (reason) => void (await put({ enabled: false }, reason))}
      onClose={onClose}
    >
      {() => (
        <div class="wrap">
          Calls are refused when the balance is used up.
          {!canRaise && " Only the operator of this service can start automatic top-ups again."} A payment that is already under
          way may still be made.
        </div>
      )}
    </Form>
  );
}

type SettingsDialogProps = DialogProps & { readonly auto: AutoTopUp };

function SettingsDialog({ auto, put, canRaise, onClose, Form }: SettingsDialogProps) {
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
    <Form
      title={auto.enabled ? "Change automatic top-ups" : "Start automatic top-ups"}
      action="Save"
      errors={{
        threshold: problemOf(form.threshold, auto.thresholdMicros),
        amount: problemOf(form.amount, auto.amountMicros),
        monthlyMax: problemOf(form.monthlyMax, auto.monthlyMaxMicros),
      }}
      onSubmit={async (reason) => {
        const settings = {
          enabled: true,
          thresholdMicros: amountOf(form.threshold) ?? 0n,
          amountMicros: amountOf(form.amount) ?? 0n,
          monthlyMaxMicros: amountOf(form.monthlyMax) ?? 0n,
          replacePaymentMethod: form.replaces,
        } as const;
        await put(settings, reason);
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
            <input type="checkbox" checked={form.replaces} onChange={(event) => set({ replaces: event.currentTarget.checked })} />
            Ask for a page on which to store another payment method
          </label>
        </>
      )}
    </Form>
  );
}

function plainText(micros: bigint): string {
  return micros === 0n ? "" : moneyText(micros).replaceAll(/[^0-9.]/g, "");
}

const STATES: Readonly<Record<string, string>> = {
  off: "Off",
  needs_payment_method: "Waits for a payment method",
  ready: "On",
  paying: "A payment is under way",
  monthly_max_reached: "The maximum of this month is reached",
};

/** The settings and the state of automatic top-ups. */
function AutoTopUpDetails({ auto }: { readonly auto: AutoTopUp }) {
  const { enabled, state, lastFailure } = auto;
  return (
    <Details>
      <Detail name="State">{STATES[state] ?? state}</Detail>
      <Detail name="Last failure">{lastFailure.replaceAll("_", " ")}</Detail>
      {enabled && (
        <>
          <Detail name="When the balance is below">
            <Money micros={auto.thresholdMicros} />
          </Detail>
          <Detail name="Amount">
            <Money micros={auto.amountMicros} />
          </Detail>
          <Detail name="This month">
            {moneyText(auto.monthMicros)} of {moneyText(auto.monthlyMaxMicros)} at most
          </Detail>
          <Detail name="Payment method">{auto.paymentMethod || "None"}</Detail>
          <Detail name="Page">{setupLink(auto)}</Detail>
        </>
      )}
    </Details>
  );
}

/** Opens in another tab: the customer page would forget the key. */
function setupLink({ setupUrl }: AutoTopUp) {
  if (!setupUrl.startsWith("https://")) return undefined;
  return (
    <a href={setupUrl} target="_blank" rel="noopener noreferrer">
      Store a payment method
    </a>
  );
}
