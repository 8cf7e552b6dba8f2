import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import { ALERT_WINDOWS, countsCost } from "../../src/domain/limit.ts";
import { Field } from "./field.tsx";
import type { FieldErrors } from "./form-dialog.tsx";
import { isRaised, limitAmountText, METRICS } from "./limit-list.tsx";
import { AMOUNT_HINT, amountOf } from "./money.tsx";
import { TextField } from "./text-field.tsx";
import { isoMinute } from "./time.tsx";

/** As the API limits it. */
const MAX_AMOUNT = 9_000_000_000_000_000n;

const SET_METRICS = ["cost", "tokens", "generations", "concurrent", "cost_alert"] as const;
const WINDOWS = {
  minute: "Each minute",
  hour: "Each hour",
  day: "Each day",
  week: "Each week, from Monday",
  month: "Each month",
  total: "In total",
} as const;

/** A limit as it is typed. */
export type LimitForm = Readonly<Record<"metric" | "window" | "amount" | "model" | "per" | "raised" | "until", string>>;

export const NEW_LIMIT: LimitForm = {
  metric: "cost",
  window: "month",
  amount: "",
  model: "",
  per: "",
  raised: "",
  until: "",
};

export function limitFormOf(limit: Limit): LimitForm {
  const { metric, window, amount, model, per, temporaryAmount, temporaryUntil } = limit;
  const isSet = isRaised(limit) && temporaryAmount !== undefined && temporaryUntil !== undefined;
  return {
    metric,
    window,
    amount: limitAmountText(limit, amount),
    model,
    per,
    raised: isSet ? limitAmountText(limit, temporaryAmount) : "",
    until: isSet ? isoMinute(timestampDate(temporaryUntil)) : "",
  };
}

export function limitErrors(form: LimitForm): FieldErrors<LimitForm> {
  const { metric, amount, raised, until } = form;
  const [low, high] = [limitAmountOf(metric, amount), limitAmountOf(metric, raised)];
  const isRaise = raised !== "" || until !== "";
  return {
    amount: amountError(metric, low),
    raised: isRaise
      ? (amountError(metric, high) ?? ((high ?? 0n) < (low ?? 0n) ? "Enter at least the amount." : undefined))
      : undefined,
    until: isRaise && !(Date.parse(until) > Date.now()) ? "Enter a time in the future." : undefined,
  };
}

function amountError(metric: string, amount: bigint | undefined): string | undefined {
  const most = limitAmountText({ metric }, MAX_AMOUNT);
  if (amount !== undefined) return amount > MAX_AMOUNT ? `Enter at most ${most}.` : undefined;
  return countsCost(metric)
    ? "Enter an amount with at most 6 decimals, such as 25.00."
    : "Enter a whole number, such as 100,000.";
}

/** Micros for cost. Undefined if the text is no amount. */
function limitAmountOf(metric: string, text: string): bigint | undefined {
  if (countsCost(metric)) {
    const amount = amountOf(text);
    return amount === undefined || amount < 0n ? undefined : amount;
  }
  const plain = text.trim().replaceAll(",", "");
  return /^\d{1,19}$/.test(plain) ? BigInt(plain) : undefined;
}

/** The limit of a request that sets it. */
export function limitPropertiesOf({ metric, window, amount, model, per, raised, until }: LimitForm) {
  const temporaryAmount = limitAmountOf(metric, raised);
  return {
    metric,
    window: metric === "concurrent" ? "" : window,
    amount: limitAmountOf(metric, amount) ?? 0n,
    model,
    per,
    ...(temporaryAmount !== undefined && {
      temporaryAmount,
      temporaryUntil: timestampFromDate(new Date(until)),
    }),
  };
}

type LimitFieldsProps = {
  readonly form: LimitForm;
  readonly errors: FieldErrors<LimitForm>;
  readonly onChange: (part: Partial<LimitForm>) => void;
  /** The limit exists: only its amounts can change. */
  readonly isFixed: boolean;
  readonly models: readonly string[];
};

export function LimitFields({ form, errors, onChange, isFixed, models }: LimitFieldsProps) {
  return (
    <>
      {!isFixed && <LimitIdentity form={form} onChange={onChange} models={models} />}
      <LimitAmount form={form} errors={errors} onChange={onChange} />
      <TextField
        label="Raised amount"
        hint="For a time. Leave empty for no raise."
        error={errors.raised}
        value={form.raised}
        maxLength={30}
        inputMode="decimal"
        onChange={(raised) => onChange({ raised: raised.trim() })}
      />
      <Field label="Raised until" error={errors.until}>
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            value={form.until}
            onInput={(event) => onChange({ until: event.currentTarget.value })}
          />
        )}
      </Field>
    </>
  );
}

export function LimitAmount({ form, errors, onChange }: Pick<LimitFieldsProps, "form" | "errors" | "onChange">) {
  return (
    <TextField
      label="Amount"
      hint={countsCost(form.metric) ? AMOUNT_HINT : "A whole number."}
      error={errors.amount}
      value={form.amount}
      maxLength={30}
      inputMode="decimal"
      onChange={(amount) => onChange({ amount })}
    />
  );
}

const ALERT_HINT = "Refuses no call: an event is written at 80 and at 100 % of the amount.";

/** What the limit counts. A limit with the same values is changed. */
export function LimitIdentity({ form, onChange, models }: Pick<LimitFieldsProps, "form" | "onChange" | "models">) {
  type Choice = readonly [name: keyof LimitForm, label: string, options: readonly (readonly string[])[]];
  const isAlert = form.metric === "cost_alert";
  const windows = Object.entries(WINDOWS).filter(([id]) => !isAlert || ALERT_WINDOWS.includes(id));
  const window: Choice = ["window", "Window", windows];
  const choices: readonly Choice[] = [
    ["metric", "What is limited", SET_METRICS.map((id) => [id, METRICS[id] ?? id])],
    ...(form.metric === "concurrent" ? [] : [window]),
    ["model", "Model", [["", "All models"], ...models.map((id) => [id, id])]],
    [
      "per",
      "Applies to",
      [
        ["", "All calls together"],
        ["user", "Each end user separately"],
      ],
    ],
  ];
  return (
    <>
      {choices.map(([name, label, options]) => (
        <Field key={name} label={label} {...(name === "metric" && isAlert && { hint: ALERT_HINT })}>
          {(control) => (
            <select
              {...control}
              value={form[name]}
              onChange={({ currentTarget: { value } }) =>
                onChange({ [name]: value, ...(value === "cost_alert" && { window: NEW_LIMIT.window }) })
              }
            >
              {options.map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
      ))}
    </>
  );
}
