import { useState } from "preact/hooks";
import type { Account, AccountPrices as Version } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { Field } from "../shared/field.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { EmptyState } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { Time } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import type { AccountTabProps } from "./account-tab-props.ts";
import { ActionButton } from "./action-button.tsx";
import { useModelIds } from "./limits.tsx";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

const COLUMNS: readonly Column<Version>[] = [
  {
    header: "Since",
    isRowHeader: true,
    cell: ({ version, effectiveFrom }) => (
      <>
        <Time at={effectiveFrom} />
        <div class="muted small regular">Version {version}</div>
      </>
    ),
  },
  { header: "Model", cell: ({ model }) => model || "All models" },
  { header: "Prices", cell: (version) => <Change version={version} /> },
];

/** The discounts and prices that the account got, latest first. */
export function AccountPrices({ account }: AccountTabProps) {
  const api = useApi();
  const toast = useToast();
  const [isOpen, setOpen] = useState(false);
  const [changes, setChanges] = useState(0);
  const pages = usePages(async (pageToken, signal) => {
    const request = { accountId: account.id, pageToken, pageSize: 25 };
    const page = await api.listAccountPrices(request, { signal });
    return { rows: page.versions, nextPageToken: page.nextPageToken };
  }, `${account.id} ${changes}`);
  const done = (message: string) => {
    toast(message);
    setChanges(changes + 1);
  };
  return (
    <>
      <p>
        <ActionButton method="setAccountPrices" onClick={() => setOpen(true)}>
          Set discount
        </ActionButton>
      </p>
      <PagedTable
        caption="Prices of the account"
        columns={COLUMNS}
        keyOf={({ version }) => String(version)}
        pages={pages}
        empty={<EmptyState title="The account has the prices of the models" />}
      />
      <p class="muted small">
        For a model, its last row counts, and without one the last row of all models. To give prices of its own, use “vx prices
        set-account”.
      </p>
      {isOpen && <DiscountDialog account={account} onDone={done} onClose={() => setOpen(false)} />}
    </>
  );
}

function Change({ version: { discountBps, prices } }: { readonly version: Version }) {
  if (discountBps !== undefined) return <>{percentText(discountBps)} off</>;
  if (!prices) return <>Those of the model</>;
  return (
    <>
      <Money micros={prices.input} /> in, <Money micros={prices.output} /> out
      {prices.tiers.map(({ aboveInputTokens, input, output }) => (
        <div key={aboveInputTokens} class="muted small">
          Above {numberText(aboveInputTokens)} input tokens: <Money micros={input} /> in, <Money micros={output} /> out
        </div>
      ))}
    </>
  );
}

function percentText(bps: number): string {
  return `${bps / 100} %`;
}

/** Undefined unless the text is a percentage from 0 to 100 with at most two decimals. */
function bpsOf(text: string): number | undefined {
  const [, whole = "", fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))? ?%?$/.exec(text.trim()) ?? [];
  const bps = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return whole !== "" && bps <= 10_000 ? bps : undefined;
}

type DiscountDialogProps = {
  readonly account: Account;
  readonly onDone: (message: string) => void;
  readonly onClose: () => void;
};

function DiscountDialog({ account, onDone, onClose }: DiscountDialogProps) {
  const api = useApi();
  const models = useModelIds();
  const [model, setModel] = useState("");
  const [text, setText] = useState("");
  const bps = bpsOf(text);
  const save = async (reason: string) => {
    const change = { case: "discountBps", value: bps ?? 0 } as const;
    await api.setAccountPrices({ accountId: account.id, model, change, reason });
    onDone(`“${account.name}” has a discount of ${percentText(bps ?? 0)}.`);
  };
  return (
    <ReasonDialog
      title={`Discount of “${account.name}”`}
      action="Set discount"
      errors={{
        discount: bps === undefined ? "Enter a percentage up to 100, such as 15 or 12.5." : undefined,
      }}
      onSubmit={save}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <Field label="Model">
            {(control) => (
              <select {...control} value={model} onChange={(event) => setModel(event.currentTarget.value)}>
                <option value="">All models</option>
                {models.map((id) => (
                  <option key={id} value={id}>
                    {id}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <TextField
            label="Discount in percent"
            hint="Taken off each price of the model. Applies from the next call."
            error={errors.discount}
            value={text}
            maxLength={7}
            inputMode="decimal"
            onChange={setText}
          />
        </>
      )}
    </ReasonDialog>
  );
}
