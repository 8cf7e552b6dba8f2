import { useState } from "preact/hooks";
import type { TopUp } from "../../gen/vx/v1/top_up_pb.js";
import { AutoTopUpCard } from "../shared/auto-top-up.tsx";
import { Button } from "../shared/button.tsx";
import { ConfirmDialog } from "../shared/confirm-dialog.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { FormDialog } from "../shared/form-dialog.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { AMOUNT_HINT, amountOf, Money, moneyText } from "../shared/money.tsx";
import { OwedNotice, PAYMENT_STATES } from "../shared/payments.tsx";
import { problemOf } from "../shared/problem.ts";
import { EmptyState } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useQuery } from "../shared/use-query.ts";
import { hrefOf, navigate } from "../shared/use-route.ts";
import { Action } from "./action.tsx";
import { PlainForm } from "./key-page.tsx";
import { isProviderPage, openProviderPage, ReturnedPayment } from "./provider-page.tsx";
import type { Viewer } from "./viewer.ts";

/** The payments, with the dialog that asks for an amount. */
export const ADD_CREDIT = hrefOf("payments", { add: "credit" });

type PaymentsProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** Payments into the account. Only for keys with the scope "billing", on servers that take payments. */
export function PaymentsSection({ viewer, params }: PaymentsProps) {
  const { topUpService, accountService } = viewer;
  const isSimulated = viewer.membership?.person.simulatesPayments === true;
  const paidId = params.get("pay");
  const canAdd = viewer.refusalOf("createTopUp") === undefined && viewer.account?.state !== "suspended";
  const pages = usePages(async (pageToken, signal) => {
    const { topups, nextPageToken } = await topUpService.listTopUps({ pageToken }, { signal });
    return { rows: topups, nextPageToken };
  }, viewer.id);
  const { data: account } = useQuery((signal) => accountService.getAccount({}, { signal }), [pages.data]);
  return (
    <>
      <PageHeader title="Payments">
        <Button onClick={pages.reload} disabled={pages.isLoading}>
          Refresh
        </Button>
        {viewer.membership && !isSimulated && <BillingPageButton viewer={viewer} />}
        <Action
          viewer={viewer}
          method="createTopUp"
          tone="primary"
          onClick={() => navigate(ADD_CREDIT)}
          disabled={viewer.account?.state === "suspended"}
        >
          Add credit
        </Action>
      </PageHeader>
      <ReturnedPayment viewer={viewer} onDone={pages.reload} />
      <OwedNotice micros={account?.owedMicros ?? 0n} />
      <PagedTable
        caption="Payments"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No payments" />}
      />
      <ZoneNote />
      {!isSimulated && (
        <AutoTopUpCard
          version={pages.data}
          get={(signal) => topUpService.getAutoTopUp({}, { signal })}
          put={async (change) => {
            const { autoTopup } = await topUpService.putAutoTopUp(change);
            if (autoTopup) openProviderPage(viewer, autoTopup.setupUrl);
          }}
          refusal={viewer.refusalOf("putAutoTopUp")}
          canRaise={viewer.membership !== undefined}
          Form={PlainForm}
        />
      )}
      {isSimulated && paidId !== null && (
        <ConfirmDialog
          title="Simulated payment page"
          action="Pay without money"
          onConfirm={async () => {
            await viewer.pageService.paySimulatedTopUp({ id: paidId });
            pages.reload();
          }}
          onClose={() => navigate(hrefOf("payments"))}
        >
          <p>
            With payments configured, this is a page of Stripe. Here no money moves: the amount is credited to the demo account.
          </p>
        </ConfirmDialog>
      )}
      {canAdd && params.has("add") && (
        <AddCreditDialog
          create={async (amountMicros, idempotencyKey) => {
            const headers = { "idempotency-key": idempotencyKey };
            const { topup } = await topUpService.createTopUp({ amountMicros }, { headers });
            pages.reload();
            return openProviderPage(viewer, topup?.url ?? "");
          }}
          isSimulated={isSimulated}
          onClose={() => navigate(hrefOf("payments"))}
        />
      )}
    </>
  );
}

/** Leads to stored cards, the billing address and tax ids, which only the payment provider has. */
function BillingPageButton({ viewer }: { readonly viewer: Viewer }) {
  const toast = useToast();
  const [isOpening, setOpening] = useState(false);
  const open = async () => {
    setOpening(true);
    try {
      openProviderPage(viewer, (await viewer.pageService.createBillingPage({})).url);
    } catch (error) {
      toast(problemOf(error).message);
    }
    setOpening(false);
  };
  return (
    <Action viewer={viewer} method="createBillingPage" disabled={isOpening} onClick={() => void open()}>
      Cards and tax ids
    </Action>
  );
}

const COLUMNS: readonly Column<TopUp>[] = [
  { header: "Created", isRowHeader: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  { header: "Amount", isNumber: true, cell: ({ amountMicros }) => <Money micros={amountMicros} /> },
  { header: "Type", cell: ({ automatic }) => (automatic ? "Automatic top-up" : "One-time payment") },
  { header: "State", cell: stateOf },
  { header: "Payment", cell: linksOf },
];

function stateOf({ state, refundedMicros, automatic, failure }: TopUp) {
  if (failure !== "") return `Failed: ${failure.replaceAll("_", " ")}`;
  const name = automatic && state === "pending" ? "Under way" : (PAYMENT_STATES[state] ?? state);
  return state === "paid" && refundedMicros > 0n ? `${name}, ${moneyText(refundedMicros)} refunded` : name;
}

/** They open in another tab: this one would forget the key. */
function linksOf({ url, receiptUrl, invoiceUrl, amount }: TopUp) {
  const links = Object.entries({ [`Pay ${amount}`]: url, Receipt: receiptUrl, Invoice: invoiceUrl }).filter(([, href]) =>
    isProviderPage(href),
  );
  if (links.length === 0) return null;
  return (
    <div class="row-actions">
      {links.map(([text, href]) => (
        <a key={text} href={href} target="_blank" rel="noopener noreferrer">
          {text}
        </a>
      ))}
    </div>
  );
}

type AddCreditDialogProps = {
  /** Returns whether the page of the payment opens. A repetition with the same key creates nothing more. */
  readonly create: (micros: bigint, idempotencyKey: string) => Promise<boolean>;
  readonly isSimulated: boolean;
  readonly onClose: () => void;
};

function AddCreditDialog({ create, isSimulated, onClose }: AddCreditDialogProps) {
  const toast = useToast();
  const [text, setText] = useState("25.00");
  const [attempt] = useState(() => crypto.randomUUID());
  const amount = amountOf(text);
  const isValid = amount !== undefined && amount > 0n && amount % 10_000n === 0n;
  return (
    <FormDialog
      title="Add credit"
      action="Continue"
      errors={{ amount: isValid ? undefined : "Enter an amount with at most two decimals, such as 25.00." }}
      onSubmit={async () => {
        const isOpening = await create(amount ?? 0n, `${attempt} ${amount}`);
        toast(isOpening ? "The payment page opens." : "The payment page is ready: follow the link “Pay” in the list.");
      }}
      onClose={onClose}
    >
      {({ amount: error }) => (
        <TextField
          label="Amount"
          hint={`${AMOUNT_HINT} ${isSimulated ? "The payment is simulated." : "You pay on a page of Stripe."}`}
          error={error}
          value={text}
          maxLength={30}
          inputMode="decimal"
          onChange={setText}
        />
      )}
    </FormDialog>
  );
}
